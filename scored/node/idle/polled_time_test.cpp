#include "scored/node/idle/polled_time.hpp"

#include "pmlib/core/segment.hpp"
#include "pmlib/core/vain_polls.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sys/mman.h>
#include <unistd.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

struct Job {
  Job() {
    auto descriptors = std::make_shared<ContextSet>();
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      pm::Geometry geometry;
      geometry.size = 2;
      int error = 0;
      segments.push_back(pm::MappedSegment::create(geometry, {.rank = rank}, error));
      descriptors->emplace_back(dup(segments.back()->fd()));
    }
    time.set_contexts(std::move(descriptors));
  }

  pm::SegmentHeader& header(std::size_t rank) { return segments[rank]->segment().header(); }

  std::vector<std::unique_ptr<pm::MappedSegment>> segments;
  PolledTime time;
};

TEST(PolledTime, WithoutContextsNothingIsPolled) {
  PolledTime time;
  time.set_contexts(nullptr);
  time.forget();
  EXPECT_EQ(time.read(1s).used, 0ns);
  EXPECT_FALSE(time.read(1s).rests);
  EXPECT_EQ(time.of_first(), 0ns);
}

TEST(PolledTime, IsThatOfAllContexts) {
  Job job;
  job.header(0).polled_us = 700;
  job.header(1).polled_us = 300;
  EXPECT_EQ(job.time.read(1s).used, 1ms);
  job.header(1).polled_us = 1300;
  EXPECT_EQ(job.time.read(1s).used, 2ms);
  EXPECT_EQ(job.time.of_first(), 700us);
}

TEST(PolledTime, OneWorkingTaskEndsTheCommonRest) {
  Job job;
  job.header(0).state = pm::ContextState::Rests;
  EXPECT_FALSE(job.time.read(1s).rests);
  job.header(1).state = pm::ContextState::Waits;
  EXPECT_TRUE(job.time.read(1s).rests);
  job.header(0).state = static_cast<pm::ContextState>(9);
  EXPECT_FALSE(job.time.read(1s).rests);
}

TEST(PolledTime, BelievedUpToTheNeedOfRestingRanks) {
  Job job;
  job.time.read(10s);  // uses up the initial 10 ms per context
  Duration before{0};
  for (std::uint64_t second = 1; second < 20; ++second) {
    job.header(0).polled_us = second * 1'000'000;  // all of the time
    const Duration used = job.time.read(1s).used;
    EXPECT_EQ(used - before, second == 1 ? 60ms : 40ms);
    before = used;
  }
}

TEST(PolledTime, VainPollsAreBelievedIfAllWait) {
  Job job;
  job.time.read(10s);  // uses up the initial 10 ms per context
  job.header(0).state = job.header(1).state = pm::ContextState::Waits;
  job.header(0).rested_us = pm::kPollsInVain;
  job.header(0).polled_us = 1'000'000;
  const auto reading = job.time.read(1s);
  EXPECT_TRUE(reading.polls);
  EXPECT_EQ(reading.used, 1s);
  job.header(1).state = pm::ContextState::Works;
  job.header(0).polled_us = 2'000'000;
  const auto later = job.time.read(1s);
  EXPECT_FALSE(later.polls);
  EXPECT_LT(later.used, 1s + 100ms);
}

TEST(PolledTime, ForgottenTimeIsNeverBelieved) {
  Job job;
  job.header(0).polled_us = 5'000;
  job.time.forget();
  job.header(0).polled_us = 6'000;
  EXPECT_EQ(job.time.read(1s).used, 1ms);
}

TEST(PolledTime, AnyClaimStaysWithinItsBounds) {
  std::mt19937_64 random(1);
  Job job;
  Duration most = 20ms, before{0};
  for (int i = 0; i < 2'000; ++i) {
    job.header(i % 2).polled_us = random() >> (random() % 64);
    job.header(i % 2).state = static_cast<pm::ContextState>(random());
    const Duration used = job.time.read(1ms).used;
    most += 40us;
    ASSERT_GE(used, before);
    ASSERT_LE(used, most);
    ASSERT_GE(job.time.of_first(), 0ns);
    before = used;
  }
}

TEST(PolledTime, UnreadableContextCountsAsNone) {
  PolledTime time;
  auto descriptors = std::make_shared<ContextSet>();
  descriptors->emplace_back();                                    // closed
  descriptors->emplace_back(memfd_create("short", MFD_CLOEXEC));  // empty
  time.set_contexts(std::move(descriptors));
  EXPECT_EQ(time.read(1s).used, 0ns);
  EXPECT_FALSE(time.read(1s).rests);
  EXPECT_EQ(time.of_first(), 0ns);
}

}  // namespace
}  // namespace score::node
