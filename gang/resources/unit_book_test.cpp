#include "gang/resources/unit_book.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::Bytes;
using base::JobId;

bool any(const std::string&, std::uint32_t) {
  return true;
}

TEST(UnitBook, ComparesOfferedAndWantedUnits) {
  const Generic node{{"gpu", 2, Bytes{40}}, {"nic", 1}};
  EXPECT_TRUE(offers(node, Generic{}));
  EXPECT_TRUE(offers(node, Generic{{"gpu", 2}}));
  EXPECT_TRUE(offers(node, Generic{{"gpu", 2, Bytes{40}}, {"nic", 1}}));
  EXPECT_FALSE(offers(node, Generic{{"gpu", 3}}));
  EXPECT_FALSE(offers(node, Generic{{"gpu", 1, Bytes{41}}}));
  EXPECT_FALSE(offers(node, Generic{{"nic", 1, Bytes{1}}}));
  EXPECT_FALSE(offers(node, Generic{{"fpga", 1}}));
}

TEST(UnitBook, GivesEachUnitToOneJob) {
  const Generic node{{"gpu", 3}};
  const Generic two{{"gpu", 2}};
  const Generic one{{"gpu", 1}};
  UnitBook book;
  const auto first = book.choose({node, two}, any);
  ASSERT_EQ(first, (Shares{{"gpu", {0, 1}}}));
  book.take(JobId{1}, *first, two);
  EXPECT_FALSE(book.choose({node, two}, any));
  EXPECT_EQ(book.choose({node, one}, any), (Shares{{"gpu", {2}}}));
  EXPECT_EQ(book.in_use(), two);
  EXPECT_TRUE(book.check(node));
  EXPECT_FALSE(book.check(one)) << "there are fewer now";
  EXPECT_FALSE(book.check(Generic{}));
  book.give_back(JobId{1});
  EXPECT_EQ(book, UnitBook{});
}

TEST(UnitBook, SharesMemoryOfSharedUnits) {
  const Generic node{{"gpu", 2, Bytes{10}, true}};
  const Generic part{{"gpu", 1, Bytes{6}}};
  const Generic rest{{"gpu", 1, Bytes{4}}};
  const Generic whole{{"gpu", 1}};
  UnitBook book;
  book.take(JobId{1}, *book.choose({node, part}, any), part);
  EXPECT_EQ(book.choose({node, part}, any), (Shares{{"gpu", {1}}})) << "fewest jobs";
  book.take(JobId{2}, *book.choose({node, part}, any), part);
  EXPECT_FALSE(book.choose({node, part}, any)) << "memory";
  EXPECT_FALSE(book.choose({node, whole}, any)) << "all of it";
  EXPECT_EQ(book.choose({node, rest}, any), (Shares{{"gpu", {0}}}));
  book.take(JobId{3}, {{"gpu", {0}}}, rest);
  EXPECT_TRUE(book.check(node));
  EXPECT_FALSE(book.check(Generic{{"gpu", 2, Bytes{9}, true}}));
  EXPECT_FALSE(book.check(Generic{{"gpu", 2, Bytes{10}, false}})) << "no longer shared";
}

TEST(UnitBook, UnitsOfUnknownMemoryAreSharedByTurns) {
  const Generic node{{"gpu", 1, Bytes{0}, true}};
  const Generic one{{"gpu", 1}};
  UnitBook book;
  for (std::uint64_t job = 1; job < 9; ++job) {
    book.take(JobId{job}, *book.choose({node, one}, any), one);
  }
  EXPECT_TRUE(book.check(node));
  const auto in_use_now = [](const std::string&, std::uint32_t index) { return index != 0; };
  EXPECT_FALSE(book.choose({node, one}, in_use_now));
}

TEST(UnitBook, LeavesKeptUnits) {
  const Generic node{{"gpu", 2}, {"nic", 1}};
  const Generic one{{"gpu", 1}};
  const UnitBook book;
  EXPECT_TRUE(book.choose({node, one, Generic{{"gpu", 1}, {"nic", 1}}}, any));
  EXPECT_FALSE(book.choose({node, one, Generic{{"gpu", 2}}}, any));
}

}  // namespace
}  // namespace score::gang
