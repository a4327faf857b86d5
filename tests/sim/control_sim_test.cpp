#include "tests/sim/control_figures.hpp"
#include "tests/sim/switching_world.hpp"

#include <gtest/gtest.h>

namespace score::sim {
namespace {

using namespace std::chrono_literals;

ControlOptions lossy(std::uint32_t nodes) {
  return {.nodes = nodes, .loss = 0.2, .twice = 0.05, .reordered = 0.05};
}

void keep_bounds(std::uint32_t nodes) {
  const ControlFigures f = measure_control({.nodes = nodes, .loss = 0.01});
  EXPECT_LE(f.timetable_worst, 10ms);
  EXPECT_LE(f.head_messages, 256);
  EXPECT_LE(f.asked_in_vain, base::limits::kHeartbeatPeriod);
  EXPECT_LE(f.served_again, 2 * base::limits::kHeartbeatPeriod);
  EXPECT_LE(f.crash_suspected, 3s);
  EXPECT_LE(f.leaf_suspected, 3s);
  EXPECT_EQ(f.others_suspected, 0U);
  EXPECT_EQ(f.false_suspicions, 0U);
  EXPECT_TRUE(f.clocks.all_within);
  EXPECT_EQ(f.clocks.unknown, 0U);
}

TEST(ControlSim, BoundsHoldWith1024Nodes) {
  keep_bounds(1'024);
}

TEST(LongControlSim, BoundsHoldWith16384Nodes) {
  keep_bounds(16'384);
}

// A suspicion ends no job; for less than a heartbeat the node gets no new ones.
TEST(ControlSim, BadNetworkRarelyCausesSuspicion) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    ControlOptions options = lossy(64);
    options.seed = seed;
    options.fanout = 4;
    ControlWorld world(options);
    for (int i = 0; i < 600; ++i) {
      world.run_for(900ms);
      (void)world.publish(4, 200);
    }
    EXPECT_EQ(world.false_deaths(), 0U) << seed;
    EXPECT_LE(world.false_suspicions(), 1U) << seed;
    EXPECT_TRUE(world.clocks().all_within) << seed;
  }
}

TEST(ControlSim, TlsKeepsNodesAliveWithoutDatagrams) {
  ControlWorld world({.nodes = 100, .fanout = 4});
  world.run_for(10s);
  world.cut_datagrams(true);
  world.run_for(60s);
  EXPECT_TRUE(world.suspects().empty());
  world.cut_datagrams(false);
  world.run_for(10s);
  EXPECT_TRUE(world.is_all_known());
  EXPECT_EQ(world.false_suspicions(), 0U);
}

TEST(ControlSim, OnlyCrashedNodesAreSuspected) {
  ControlWorld world({.nodes = 500, .fanout = 8, .loss = 0.01});
  world.run_for(10s);
  for (Position p = 1; p <= 200; ++p) world.crash(p);  // a rack
  world.run_for(10s);
  EXPECT_EQ(world.suspects().size(), 200U);
  EXPECT_EQ(world.false_suspicions(), 0U);
}

TEST(ControlSim, RestartedHeadLearnsOfEveryNode) {
  ControlWorld world({.nodes = 1'000, .fanout = 8, .loss = 0.01});
  world.run_for(5s);
  world.crash(3);
  world.restart_head();
  world.run_for(2s);
  EXPECT_TRUE(world.is_all_known());
  world.run_for(20s);
  EXPECT_EQ(world.false_suspicions(), 0U);
}

TEST(SwitchingSim, BadNetworkCausesNoWrongSwitch) {
  const SwitchingFigures f = measure_switching(lossy(16), 10min);
  EXPECT_EQ(f.boundaries, 6'000U);
  EXPECT_EQ(f.wrong_switches, 0U);
  EXPECT_EQ(f.lost_slices, 0U);
}

}  // namespace
}  // namespace score::sim
