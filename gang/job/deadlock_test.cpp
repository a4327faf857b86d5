#include "gang/job/deadlock.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::gang {
namespace {

TEST(DeadlockText, NamesRanksInOrderWithTheirWaits) {
  EXPECT_EQ(
      deadlock_text({{.rank = 1, .call = "MPI_Recv", .source = 0, .tag = 3},
                     {.rank = 0, .call = "MPI_Recv", .source = 1, .tag = 7, .bytes = 64}},
                    4),
      "deadlock: no task can send: rank 0 in MPI_Recv from rank 1, tag 7, 64 bytes; rank 1 in "
      "MPI_Recv from rank 0, tag 3; 2 more");
}

TEST(DeadlockText, OmitsUnknownValues) {
  EXPECT_EQ(
      deadlock_text({{.rank = 0, .call = "MPI_Barrier"}, {.rank = 5, .source = 2}}, 2),
      "deadlock: no task can send: rank 0 in MPI_Barrier; rank 5 waits for a message from rank "
      "2");
  EXPECT_EQ(deadlock_text({}, 7), "deadlock: every task waits for a message and none can send one");
}

TEST(DeadlockText, IsBounded) {
  std::vector<base::TaskWait> waits;
  for (std::uint32_t rank = 40; rank-- > 0;) waits.push_back({.rank = rank, .call = "MPI_Wait"});
  const std::string text = deadlock_text(waits, 1000);
  EXPECT_NE(text.find("rank 7 in MPI_Wait; 992 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("rank 8 "), std::string::npos) << text;
}

TEST(WaitLines, HasOneLinePerRankAndABound) {
  EXPECT_EQ(
      wait_lines({{.rank = 3, .call = "MPI_Barrier"},
                  {.rank = 1, .call = "MPI_Recv", .source = 0, .tag = 3},
                  {.rank = 3, .call = "MPI_Wait"}}),
      (std::vector<std::string>{"rank 1 in MPI_Recv from rank 0, tag 3", "rank 3 in MPI_Barrier"}));
  EXPECT_TRUE(wait_lines({}).empty());
  std::vector<base::TaskWait> many(50);
  for (std::uint32_t rank = 0; rank < 50; ++rank) many[rank].rank = rank;
  const auto lines = wait_lines(many);
  ASSERT_EQ(lines.size(), kMaxWaitsListed + 1);
  EXPECT_EQ(lines.back(), "18 more");
}

// The names come from users' memory, the other values from a node that may be wrong.
TEST(DeadlockText, IsPlainTextForAnyTaskInput) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::vector<base::TaskWait> waits(random() % 40);
    for (base::TaskWait& wait : waits) {
      wait.rank = static_cast<std::uint32_t>(random() % 50);
      for (std::size_t n = random() % 40; n > 0; --n) wait.call += static_cast<char>(random());
      wait.source = static_cast<std::int64_t>(random());
      wait.tag = static_cast<std::int64_t>(random());
      wait.bytes = random();
    }
    const std::string text = deadlock_text(waits, random() % 100);
    EXPECT_LT(text.size(), 1200U);
    for (const unsigned char c : text) ASSERT_TRUE(c >= ' ' && c < 0x7f);
    for (const std::string& line : wait_lines(waits)) {
      EXPECT_LT(line.size(), 150U);
      for (const unsigned char c : line) ASSERT_TRUE(c >= ' ' && c < 0x7f);
    }
  }
}

}  // namespace
}  // namespace score::gang
