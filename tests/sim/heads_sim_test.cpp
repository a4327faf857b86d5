// Two heads run under partitions, crashes, reboots and clocks of different rates, from fixed seeds.
#include "tests/sim/heads_world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace score::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTakeOver = 5s;

void add_seen(HeadsSeen& all, const HeadsSeen& one) {
  all.submitted += one.submitted;
  all.acknowledged += one.acknowledged;
  all.taken_charge += one.taken_charge;
  all.stood_down += one.stood_down;
  all.alone += one.alone;
  all.snapshots += one.snapshots;
  all.crashes += one.crashes;
  all.reboots += one.reboots;
  all.partitions += one.partitions;
  all.old_disks += one.old_disks;
  all.stops += one.stops;
  all.lies += one.lies;
  all.unwitnessed += one.unwitnessed;
}

TEST(HeadsSim, OneHeadLeadsAndNoEntryIsLost) {
  HeadsSeen all;
  int recovered = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    HeadsWorld world({.seed = seed, .nodes = 1 + seed % 7});
    const HeadsSeen before = world.seen();
    ASSERT_NO_THROW(world.run_for(120s)) << "seed " << seed;
    ASSERT_NO_THROW(world.heal()) << "seed " << seed;
    ASSERT_NO_THROW(world.run_for(30s)) << "seed " << seed;
    if (!world.in_charge() && world.recover()) {
      ++recovered;
      ASSERT_NO_THROW(world.run_for(30s)) << "seed " << seed;
    }
    EXPECT_TRUE(world.in_charge()) << "seed " << seed;
    EXPECT_TRUE(world.has_current_follower()) << "seed " << seed;
    EXPECT_GT(world.seen().acknowledged, before.acknowledged) << "seed " << seed;
    add_seen(all, world.seen());
  }
  fmt::print(
      "heads: {} entries acknowledged of {}, {} without a follower; {} take-overs, {} heads "
      "stood down, {} crashes, {} reboots, {} partitions, {} older disks, {} stops, {} lies; lost "
      "without witnesses: {}\n",
      all.acknowledged, all.submitted, all.alone, all.taken_charge, all.stood_down, all.crashes,
      all.reboots, all.partitions, all.old_disks, all.stops, all.lies, all.unwitnessed);
  // A witness may know a change that was on an older disk only, and was not acknowledged.
  EXPECT_LE(recovered, 10);
  // A run that has observed nothing is no proof.
  EXPECT_GT(all.acknowledged, 10'000U);
  EXPECT_GT(all.alone, 100U);
  EXPECT_GT(all.taken_charge, 200U);
  EXPECT_GT(all.stood_down, 50U);
  EXPECT_GT(all.crashes, 100U);
  EXPECT_GT(all.reboots, 20U);
  EXPECT_GT(all.partitions, 100U);
  EXPECT_GT(all.old_disks, 100U);
  EXPECT_GT(all.stops, 100U);
  EXPECT_GT(all.lies, 1'000U);
  EXPECT_GE(all.faults() - all.lies, 2'000U);
  EXPECT_LT(all.unwitnessed, all.acknowledged / 100);
}

TEST(HeadsSim, FollowerTakesOverInTime) {
  Duration longest{0};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    HeadsWorld world({.seed = seed, .nodes = 1 + seed % 7, .has_faults = false});
    world.run_for(10s);
    for (int round = 0; round < 4; ++round) {
      ASSERT_TRUE(world.has_current_follower()) << "seed " << seed;
      const std::size_t first = *world.in_charge();
      world.crash(first);
      const TimePoint crashed = world.now();
      while (!world.in_charge() && world.now() < crashed + 60s) world.run_for(20ms);
      ASSERT_EQ(world.in_charge(), 1 - first) << "seed " << seed;
      longest = std::max(longest, world.now() - crashed);
      world.restart(first);
      world.run_for(5s);
    }
  }
  fmt::print("heads: longest take-over {} ms\n",
             std::chrono::duration_cast<std::chrono::milliseconds>(longest).count());
  EXPECT_LE(longest, kTakeOver);
}

}  // namespace
}  // namespace score::sim
