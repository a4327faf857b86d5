#include "scored/head/streams/output_room.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

constexpr UserId kAlice{1000};
constexpr UserId kBob{1001};
constexpr std::size_t kHalf = OutputRoom::kHalf;
constexpr std::size_t kOneWindow = limits::kIoWindowBytes;

class OutputRoomTest : public testing::Test {
 protected:
  void open(UserId user, std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) room_.open(user);
  }

  OutputRoom room_;
};

TEST_F(OutputRoomTest, OneJobMayUseHalfAndNoMore) {
  open(kAlice, 1);
  EXPECT_EQ(room_.room(kAlice, 0), kHalf);
  room_.change(kAlice, 0, kHalf);
  EXPECT_EQ(room_.room(kAlice, kHalf), 0U);
  EXPECT_EQ(room_.held(kAlice), kHalf);
}

TEST_F(OutputRoomTest, EachJobKeepsItsShare) {
  open(kAlice, 64);
  room_.change(kAlice, 0, kHalf);
  EXPECT_EQ(room_.room(kAlice, 0), kHalf / 64);
  EXPECT_EQ(room_.room(kAlice, kHalf / 64 - 10), 10U);
  EXPECT_EQ(room_.room(kAlice, kHalf), 0U);
}

TEST_F(OutputRoomTest, UsersDoNotShareRoom) {
  open(kAlice, 1);
  open(kBob, 1);
  room_.change(kAlice, 0, kHalf);
  EXPECT_EQ(room_.room(kBob, 0), kHalf);
}

TEST_F(OutputRoomTest, RefusedPlacesAreAskedAsRoomGrows) {
  open(kAlice, 3);
  room_.change(kAlice, 0, kHalf);
  for (std::uint32_t node = 0; node < 3; ++node) room_.refuse(kAlice, {JobId(node + 1), node});
  EXPECT_TRUE(room_.take_due(kAlice).empty());
  room_.change(kAlice, kHalf, kHalf - 2 * kOneWindow);
  const auto due = room_.take_due(kAlice);
  ASSERT_EQ(due.size(), 2U) << "each may send a window";
  EXPECT_EQ(due[0], (OutputRoom::Place{JobId(1), 0}));
  EXPECT_EQ(due[1], (OutputRoom::Place{JobId(2), 1}));
  EXPECT_TRUE(room_.take_due(kAlice).empty()) << "their windows are reserved";
  room_.came(kAlice, due[0]);
  EXPECT_EQ(room_.take_due(kAlice).size(), 1U);
}

TEST_F(OutputRoomTest, PlaceRefusedAgainIsLast) {
  open(kAlice, 2);
  room_.refuse(kAlice, {JobId(1), 0});
  const auto due = room_.take_due(kAlice);
  room_.change(kAlice, 0, kHalf);
  room_.refuse(kAlice, {JobId(2), 0});
  room_.refuse(kAlice, due.at(0));
  room_.refuse(kAlice, due.at(0));
  room_.change(kAlice, kHalf, 0);
  const auto again = room_.take_due(kAlice);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].job, JobId(1));
}

TEST_F(OutputRoomTest, EndedJobsAndLostPlacesAreForgotten) {
  open(kAlice, 2);
  room_.refuse(kAlice, {JobId(1), 0});
  room_.refuse(kAlice, {JobId(2), 0});
  room_.refuse(kAlice, {JobId(2), 1});
  room_.forget(kAlice, {JobId(2), 0});
  room_.close(kAlice, JobId(1));
  EXPECT_EQ(room_.take_all(kAlice, JobId(2)).size(), 1U);
  room_.close(kAlice, JobId(2));
  EXPECT_EQ(room_.jobs(kAlice), 0U);
  EXPECT_TRUE(room_.take_due(kAlice).empty());
}

// Jobs take as much room as they get, at random. Together they stay within both halves.
TEST_F(OutputRoomTest, JobsNeverHoldMoreThanBothHalves) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    OutputRoom room;
    std::vector<std::size_t> held(1 + random() % 300);
    for (std::size_t i = 0; i < held.size(); ++i) room.open(kAlice);
    for (int step = 0; step < 3'000; ++step) {
      std::size_t& one = held[random() % held.size()];
      const std::size_t before = one;
      if (random() % 8 == 0) {
        one = 0;
      } else {
        one += std::min<std::size_t>(random() % 300'000, room.room(kAlice, one));
      }
      room.change(kAlice, before, one);
      ASSERT_LE(room.held(kAlice), 2 * kHalf);
    }
  }
}

}  // namespace
}  // namespace score::head
