#include "monitor/meters/job_profile.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kProfileStart{std::chrono::seconds(1'800'000'000)};  // a multiple of ten minutes

constexpr JobId kJob(7);
constexpr JobId kOneStep(8), kOtherStep(9);

NodeUse node_use(Duration cpu, std::uint64_t memory, std::uint64_t sent = 0) {
  return {.cpu = cpu, .memory = Bytes(memory), .pm_sent = Bytes(sent)};
}

TEST(JobProfile, AddsTheNodesOfAStep) {
  JobProfile profile;
  profile.add(NodeId(0), kJob, kProfileStart + 10s, node_use(3s, 100, 7));
  profile.add(NodeId(1), kJob, kProfileStart + 11s, node_use(4s, 300, 8));
  profile.add(NodeId(0), kJob, kProfileStart + 20s, node_use(1s, 50));
  ASSERT_EQ(profile.points().size(), 2U);
  const ProfilePoint& first = profile.points()[0];
  EXPECT_EQ(first.end, kProfileStart + Duration(10s));
  EXPECT_EQ(first.cpu, 7s);
  EXPECT_EQ(first.memory, Bytes(400));
  EXPECT_EQ(first.memory_largest, Bytes(300));
  EXPECT_EQ(first.pm_sent, Bytes(15));
  const ProfilePoint& second = profile.points()[1];
  EXPECT_EQ(second.memory, Bytes(350)) << "node 1 has not reported yet";
  EXPECT_EQ(second.cpu, 1s);
}

TEST(JobProfile, LostNodeStopsCounting) {
  JobProfile profile;
  profile.add(NodeId(0), kJob, kProfileStart + 10s, node_use(0s, 100));
  profile.add(NodeId(1), kJob, kProfileStart + 10s, node_use(0s, 300));
  for (int second = 20; second <= 40; second += 10)
    profile.add(NodeId(0), kJob, kProfileStart + std::chrono::seconds(second), node_use(0s, 100));
  EXPECT_EQ(profile.points().back().memory, Bytes(100));
}

TEST(JobProfile, MergesPointsWhenItIsFull) {
  JobProfile profile;
  Duration sum{0};
  for (int step = 1; step <= 3'000; ++step) {
    profile.add(NodeId(0), kJob, kProfileStart + step * Duration(10s),
                node_use(step * 1ms, step == 77 ? 9'000 : 5));
    sum += step * 1ms;
    ASSERT_LE(profile.points().size(), JobProfile::kMostPoints);
  }
  EXPECT_EQ(profile.step(), 320s);
  Duration cpu{0};
  Bytes most{0};
  for (const ProfilePoint& point : profile.points()) {
    cpu += point.cpu;
    most = std::max(most, point.memory);
    EXPECT_EQ(point.end.time_since_epoch() % profile.step(), Duration(0));
  }
  EXPECT_EQ(cpu, sum);
  EXPECT_EQ(most, Bytes(9'000));
}

TEST(JobProfile, SparseReportsStayBounded) {
  JobProfile profile;
  for (int hour = 1; hour <= 1'000; ++hour) {
    profile.add(NodeId(0), kJob, kProfileStart + hour * Duration(1h), node_use(1s, 5));
    ASSERT_LE(profile.points().size(), JobProfile::kMostPoints);
  }
  Duration cpu{0};
  for (const ProfilePoint& point : profile.points()) cpu += point.cpu;
  EXPECT_EQ(cpu, 1'000s);
}

TEST(JobProfile, StepsOfOneNodeAreAddedUp) {
  JobProfile profile;
  profile.add(NodeId(0), kOneStep, kProfileStart + 10s, node_use(1s, 100));
  profile.add(NodeId(0), kOtherStep, kProfileStart + 10s, node_use(1s, 200));
  profile.add(NodeId(1), kOneStep, kProfileStart + 10s, node_use(1s, 250));
  ASSERT_EQ(profile.points().size(), 1U);
  EXPECT_EQ(profile.points()[0].memory, Bytes(550));
  EXPECT_EQ(profile.points()[0].memory_largest, Bytes(300));
}

TEST(JobProfile, EarlierClockLosesNothing) {
  JobProfile profile;
  profile.add(NodeId(0), kJob, kProfileStart + 3'600s, node_use(1s, 1));
  profile.add(NodeId(0), kJob, kProfileStart, node_use(2s, 1));
  ASSERT_EQ(profile.points().size(), 1U);
  EXPECT_EQ(profile.points()[0].cpu, 3s);
}

TEST(JobProfile, HostileReportsDoNotOverflow) {
  JobProfile profile;
  for (int step = 1; step <= 400; ++step)
    profile.add(NodeId(0), kJob, kProfileStart + step * Duration(10s),
                node_use(Duration::max(), UINT64_MAX, UINT64_MAX));
  profile.add(NodeId(0), kJob, kProfileStart + 4'010s, node_use(Duration::min(), 0));
  for (const ProfilePoint& point : profile.points()) EXPECT_GE(point.cpu, Duration(0));
}

}  // namespace
}  // namespace score::monitor
