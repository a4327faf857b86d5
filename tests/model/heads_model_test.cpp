// These tests run searches of small worlds of two heads and their witnesses (docs/adr/0111).
#include "tests/model/heads_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace score::gang::model {
namespace {

void expect_sound(const World& world) {
  const Findings found = explore(world);
  fmt::print("{} states, {} with an acknowledged change, {} after a take-over, {} times progress\n",
             found.states, found.acknowledged, found.second_terms, found.progress_checks);
  EXPECT_EQ(found.broken, "");
  EXPECT_FALSE(found.truncated);
  // A search that has observed nothing is no proof.
  EXPECT_GT(found.acknowledged, 1'000U);
  EXPECT_GT(found.second_terms, 1'000U);
  EXPECT_GT(found.progress_checks, 100U);
}

void expect_broken(const World& world, const std::string& what) {
  const Findings found = explore(world);
  EXPECT_NE(found.broken.find(what), std::string::npos) << found.broken << found.truncated;
}

TEST(HeadsModel, CrashesAndOneWayCutsLoseNothing) {
  expect_sound({.witnesses = 1, .faults = {.cuts = 1, .crashes = 1}, .entries = 1});
}

TEST(HeadsModel, LateMessagesLoseNothing) {
  expect_sound({.witnesses = 1, .faults = {.late = 1, .crashes = 1}, .entries = 1});
}

TEST(HeadsModel, OlderDiskNeverLeads) {
  expect_sound({.witnesses = 1, .faults = {.crashes = 1, .old_disks = 1}, .entries = 2});
}

TEST(HeadsModel, StoppedHeadAndClockLoseNothing) {
  expect_sound({.witnesses = 3, .faults = {.crashes = 1, .stops = 1}, .entries = 1});
}

TEST(HeadsModel, ForgetfulWitnessLosesNothing) {
  expect_sound({.witnesses = 1, .faults = {.crashes = 1, .forgets = 1}, .entries = 1});
}

// It refuses, grants its lease to both heads, and shows marks of the past.
TEST(HeadsModel, OneLiarAmongThreeStopsNothing) {
  expect_sound(
      {.witnesses = 3, .has_liar = true, .faults = {.crashes = 1, .lies = 1}, .entries = 1});
}

// The links fail, too, so the size of the quorum must allow for the liar.
TEST(HeadsModel, LiarAndPartitionMeetALargerQuorum) {
  expect_sound({.witnesses = 4,
                .liars = 1,
                .has_liar = true,
                .is_parted = true,
                .faults = {.cuts = 1, .lies = 1},
                .entries = 1});
}

// ---- the search finds what the rules prevent ----------------------------------------------------

TEST(HeadsModel, FindsLossIfWitnessCouldForgeMarks) {
  expect_broken({.witnesses = 3,
                 .has_liar = true,
                 .can_forge = true,
                 .faults = {.crashes = 2, .lies = 1},
                 .entries = 1},
                "leads without the acknowledged changes");
}

TEST(HeadsModel, FindsTwoLeadersIfTheOnlyWitnessLies) {
  expect_broken({.witnesses = 1, .has_liar = true, .faults = {.cuts = 2, .lies = 1}, .entries = 1},
                "two heads are in charge");
}

// This is the limit of three witnesses (docs/adr/0111).
TEST(HeadsModel, FindsTwoLeadersIfLiarMeetsPartition) {
  expect_broken({.witnesses = 3,
                 .has_liar = true,
                 .is_parted = true,
                 .faults = {.cuts = 1, .lies = 1},
                 .entries = 1},
                "two heads are in charge");
}

}  // namespace
}  // namespace score::gang::model
