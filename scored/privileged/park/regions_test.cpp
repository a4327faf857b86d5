#include "scored/privileged/park/regions.hpp"

#include <gtest/gtest.h>

#include <string>

namespace score::park {
namespace {

std::vector<Region> read(std::string_view text, std::size_t piece = 7) {
  RegionReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  return reader.finish();
}

constexpr std::string_view kHeap =
    "55d0c2a00000-55d0c2a21000 rw-p 00000000 00:00 0                          [heap]\n"
    "Size:                132 kB\n"
    "Rss:                 100 kB\n"
    "Pss:                  90 kB\n"
    "Pss_Dirty:            80 kB\n"
    "Referenced:           60 kB\n"
    "Anonymous:            96 kB\n"
    "Swap:                 12 kB\n"
    "SwapPss:               5 kB\n"
    "Locked:                0 kB\n"
    "VmFlags: rd wr mr mw me ac sd \n";

TEST(Regions, SizesAreRead) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, kHeap.size()}) {
    const auto regions = read(kHeap, piece);
    ASSERT_EQ(regions.size(), 1U);
    const Region& heap = regions[0];
    EXPECT_EQ(heap.start, 0x55d0c2a00000U);
    EXPECT_EQ(heap.end, 0x55d0c2a21000U);
    EXPECT_EQ(heap.rss, 100U * 1'024);
    EXPECT_EQ(heap.pss, 90U * 1'024);
    EXPECT_EQ(heap.anonymous, 96U * 1'024);
    EXPECT_EQ(heap.referenced, 60U * 1'024);
    EXPECT_EQ(heap.swap, 12U * 1'024);
    EXPECT_TRUE(heap.may_leave());
  }
}

TEST(Regions, FixedMemoryStays) {
  for (const char* flag : {"lo", "ht", "io", "pf", "sh"}) {
    std::string text(kHeap);
    text.replace(text.find("mr"), 2, flag);
    ASSERT_EQ(read(text).size(), 1U);
    EXPECT_FALSE(read(text)[0].may_leave()) << flag;
  }
}

TEST(Regions, RegionsWithoutAddressesAreLeftOut) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("Rss: 4 kB\nVmFlags: lo\n").empty());
  EXPECT_TRUE(read("2000-1000 rw-p\n").empty());
  EXPECT_TRUE(read("1000-2000").empty());
  EXPECT_TRUE(read("1000 2000 rw-p\n").empty());
}

TEST(Regions, ImpossibleSizesCountAsNone) {
  const auto regions = read("1000-2000 rw-p\nRss: 18446744073709551615 kB\nAnonymous: x kB\nSwap:");
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].rss, 0U);
  EXPECT_FALSE(regions[0].may_leave());
}

TEST(Regions, LongLinesDoNoHarm) {
  const std::string name(100'000, 'x');
  const auto regions = read("1000-2000 rw-p " + name + "\nRss: 4 kB\n");
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].rss, 4'096U);
}

}  // namespace
}  // namespace score::park
