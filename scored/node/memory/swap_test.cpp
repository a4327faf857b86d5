#include "scored/node/memory/swap.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

TEST(Swap, FilesAreRead) {
  const auto swaps = parse_swaps(
      "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
      "/dev/nvme0n1p3                          partition\t16777212\t1024\t\t-2\n"
      "/dev/zram0                              partition\t1048572\t\t0\t\t100\n");
  ASSERT_EQ(swaps.size(), 2U);
  EXPECT_EQ(swaps[0].path, "/dev/nvme0n1p3");
  EXPECT_EQ(swaps[0].size, Bytes(16777212ULL * 1'024));
  EXPECT_EQ(swaps[0].used, Bytes(1024ULL * 1'024));
  EXPECT_EQ(swaps[1].path, "/dev/zram0");
}

TEST(Swap, LinesThatMakeNoSenseAreLeftOut) {
  for (const char* line : {"", "/a", "/a file", "/a file 1", "a file 5 1 -2", "/a file x 1 -2",
                           "/a file 5 6 -2", "/a file 99999999999999999999 0 -2",
                           "/a file 18446744073709551615 0 -2", "/a file -5 0 -2"}) {
    EXPECT_TRUE(parse_swaps(line).empty()) << line;
  }
}

TEST(Swap, NoneIsLookedForUnlessMemoryIsShared) {
  const JobSwap none = find_job_swap({});
  EXPECT_EQ(none.most, Bytes(0));
  EXPECT_EQ(none.why_none, "");
}

TEST(Swap, JobsGetNoMoreThanTheirPart) {
  EXPECT_EQ(free_job_swap(Bytes(100), Bytes(100)), Bytes(0));
  EXPECT_LE(free_job_swap(Bytes::max(), Bytes(0)), Bytes(1ULL << 50U)) << "what the host has free";
}

}  // namespace
}  // namespace score::node
