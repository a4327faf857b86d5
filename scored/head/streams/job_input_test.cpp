#include "scored/head/streams/job_input.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

TEST(JobInput, WaitsForTheStartOfTheTasks) {
  JobInput input;
  ASSERT_TRUE(input.accept("early", false));
  EXPECT_TRUE(input.take_pieces().empty());
  input.start({4});
  const auto pieces = input.take_pieces();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].data, "early");
  EXPECT_EQ(input.targets(), std::vector<std::uint32_t>{4});
}

TEST(JobInput, RoomFollowsTheSlowestNode) {
  JobInput input;
  input.start({0, 1});
  ASSERT_TRUE(input.accept("abcd", false));
  (void)input.take_pieces();
  EXPECT_EQ(input.taken(0, 4), 0u);
  EXPECT_EQ(input.taken(1, 3), 3u);
  EXPECT_EQ(input.taken(1, 1), 1u);
}

TEST(JobInput, NewAttemptGetsUnsentInputAndTheEnd) {
  JobInput input;
  input.start({0, 1});
  ASSERT_TRUE(input.accept("lost", false));
  (void)input.take_pieces();
  EXPECT_EQ(input.taken(0, 4), 0u);
  input.restart();
  EXPECT_EQ(input.take_dropped(), 4u) << "the front end gets its room back";
  ASSERT_TRUE(input.accept("new", true));
  EXPECT_TRUE(input.take_pieces().empty());
  input.start({2});
  auto pieces = input.take_pieces();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].data, "new");
  EXPECT_TRUE(pieces[0].eof);
  EXPECT_EQ(input.taken(0, 3), 0u);
  EXPECT_EQ(input.taken(2, 3), 3u);
  input.restart();
  EXPECT_EQ(input.take_dropped(), 0u);
  input.start({0});
  pieces = input.take_pieces();
  ASSERT_EQ(pieces.size(), 1u) << "the end, once more";
  EXPECT_TRUE(pieces[0].data.empty() && pieces[0].eof);
}

TEST(JobInput, RefusesMoreThanTheWindow) {
  JobInput input;
  ASSERT_TRUE(input.accept(std::string(limits::kIoWindowBytes, 'x'), false));
  EXPECT_TRUE(input.accept("y", false).error().is(Errc::TooLarge));
}

TEST(JobInput, NodeCannotTakeMoreThanWasSent) {
  JobInput input;
  input.start({0});
  ASSERT_TRUE(input.accept("abc", false));
  (void)input.take_pieces();
  EXPECT_EQ(input.taken(0, ~std::uint64_t{0}), 3u);
  EXPECT_EQ(input.taken(0, 100), 0u);
  EXPECT_EQ(input.taken(7, 100), 0u);
}

TEST(JobInput, IsDroppedWithoutAReader) {
  JobInput input;
  ASSERT_TRUE(input.accept("abc", false));
  input.start({});
  EXPECT_EQ(input.take_dropped(), 3u);
  ASSERT_TRUE(input.accept("de", true));
  EXPECT_EQ(input.take_dropped(), 2u);
  EXPECT_TRUE(input.take_pieces().empty());
}

TEST(JobInput, EndsOnce) {
  JobInput input;
  input.start({0});
  ASSERT_TRUE(input.accept("", true));
  ASSERT_TRUE(input.accept("late", false));
  const auto pieces = input.take_pieces();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(pieces[0].eof);
  EXPECT_EQ(input.take_dropped(), 4u);
}

}  // namespace
}  // namespace score::head
