// Tests the traffic matrix with counts that wrap and with nodes that send too much.
#include "monitor/meters/peer_meter.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

using Cells = std::vector<PeerMeter::Cell>;

constexpr AttemptId kAttempt{257};  // of job 1

GangSample sent(std::vector<std::uint32_t> frames, AttemptId attempt = kAttempt) {
  GangSample gang;
  gang.attempt = attempt;
  gang.frames_to = std::move(frames);
  return gang;
}

PeerMeter meter(std::uint32_t nodes) {
  PeerMeter made;
  made.set_nodes(nodes);
  return made;
}

TEST(PeerMeter, ReturnsRatesBetweenNodes) {
  PeerMeter map = meter(8);
  const std::vector<NodeId> nodes = {NodeId(5), NodeId(2)};
  map.feed(NodeId(5), TimePoint(1s), sent({0, 100}), nodes);
  EXPECT_EQ(map.cells(TimePoint(1s), {}), Cells()) << "once is no rate";
  map.feed(NodeId(5), TimePoint(3s), sent({0, 140}), nodes);
  EXPECT_EQ(map.cells(TimePoint(3s), {}), (Cells{{5, 2, 20}}));
}

TEST(PeerMeter, AddsJobsOrShowsOne) {
  PeerMeter map = meter(2);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1)};
  for (const std::uint32_t second : {1U, 2U}) {
    const TimePoint taken{Duration(1s) * second};
    map.feed(NodeId(0), taken, sent({0, second * 10}), nodes);
    map.feed(NodeId(0), taken, sent({0, second * 5}, AttemptId(513)), nodes);
  }
  EXPECT_EQ(map.cells(TimePoint(2s), {}), (Cells{{0, 1, 15}}));
  EXPECT_EQ(map.cells(TimePoint(2s), JobId(2)), (Cells{{0, 1, 5}}));
}

TEST(PeerMeter, CountsOverTheWrap) {
  PeerMeter map = meter(2);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1)};
  map.feed(NodeId(0), TimePoint(1s), sent({0, 0xfffffff0}), nodes);
  map.feed(NodeId(0), TimePoint(2s), sent({0, 0x10}), nodes);
  EXPECT_EQ(map.cells(TimePoint(2s), {}), (Cells{{0, 1, 32}}));
  map.feed(NodeId(0), TimePoint(3s), sent({0, 0x8}), nodes);
  EXPECT_EQ(map.cells(TimePoint(3s), {}), Cells()) << "a count that went back";
}

TEST(PeerMeter, SharesCellsAmongManyNodes) {
  PeerMeter map = meter(130);
  ASSERT_EQ(map.nodes_per_cell(), 3U);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1), NodeId(129)};
  for (const std::uint32_t second : {1U, 2U}) {
    map.feed(NodeId(0), TimePoint(Duration(1s) * second), sent({0, second, second * 7}), nodes);
  }
  EXPECT_EQ(map.cells(TimePoint(2s), {}), (Cells{{0, 0, 1}, {0, 43, 7}}));
}

TEST(PeerMeter, DropsEntriesThatDoNotFit) {
  PeerMeter map = meter(2);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1)}, strange = {NodeId(0), NodeId(7)};
  for (const std::uint32_t second : {1U, 2U}) {
    const TimePoint taken{Duration(1s) * second};
    map.feed(NodeId(0), taken, sent({0, second, second}), nodes);
    map.feed(NodeId(9), taken, sent({0, second}), nodes);
    map.feed(NodeId(0), taken, sent({0, second}), strange);
    map.feed(NodeId(0), taken, sent({0, second}), {});
  }
  EXPECT_EQ(map.cells(TimePoint(2s), {}), Cells());
}

TEST(PeerMeter, DropsNodesThatSendNothing) {
  PeerMeter map = meter(2);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1)};
  for (const std::uint32_t second : {1U, 2U}) {
    map.feed(NodeId(0), TimePoint(Duration(1s) * second), sent({0, second}), nodes);
  }
  EXPECT_EQ(map.cells(TimePoint(5s), {}).size(), 1U);
  EXPECT_EQ(map.cells(TimePoint(6s), {}), Cells());
}

}  // namespace
}  // namespace score::monitor
