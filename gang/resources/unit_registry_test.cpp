#include "gang/resources/unit_registry.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::Bytes;
using base::JobId;

bool any(const std::string&, std::uint32_t) {
  return true;
}

TEST(UnitRegistry, ComparesOfferedAndWantedUnits) {
  const Generic node{{"gpu", 2, Bytes{40}}, {"nic", 1}};
  EXPECT_TRUE(offers(node, Generic{}));
  EXPECT_TRUE(offers(node, Generic{{"gpu", 2}}));
  EXPECT_TRUE(offers(node, Generic{{"gpu", 2, Bytes{40}}, {"nic", 1}}));
  EXPECT_FALSE(offers(node, Generic{{"gpu", 3}}));
  EXPECT_FALSE(offers(node, Generic{{"gpu", 1, Bytes{41}}}));
  EXPECT_FALSE(offers(node, Generic{{"nic", 1, Bytes{1}}}));
  EXPECT_FALSE(offers(node, Generic{{"fpga", 1}}));
}

TEST(UnitRegistry, GivesEachUnitToOneJob) {
  const Generic node{{"gpu", 3}};
  const Generic two{{"gpu", 2}};
  const Generic one{{"gpu", 1}};
  UnitRegistry registry;
  const auto first = registry.choose({node, two}, any);
  ASSERT_EQ(first, (Shares{{"gpu", {0, 1}}}));
  registry.take(JobId{1}, *first, two);
  EXPECT_FALSE(registry.choose({node, two}, any));
  EXPECT_EQ(registry.choose({node, one}, any), (Shares{{"gpu", {2}}}));
  EXPECT_EQ(registry.in_use(), two);
  EXPECT_TRUE(registry.check(node));
  EXPECT_FALSE(registry.check(one)) << "there are fewer now";
  EXPECT_FALSE(registry.check(Generic{}));
  registry.give_back(JobId{1});
  EXPECT_EQ(registry, UnitRegistry{});
}

TEST(UnitRegistry, SharesMemoryOfSharedUnits) {
  const Generic node{{"gpu", 2, Bytes{10}, true}};
  const Generic part{{"gpu", 1, Bytes{6}}};
  const Generic rest{{"gpu", 1, Bytes{4}}};
  const Generic whole{{"gpu", 1}};
  UnitRegistry registry;
  registry.take(JobId{1}, *registry.choose({node, part}, any), part);
  EXPECT_EQ(registry.choose({node, part}, any), (Shares{{"gpu", {1}}})) << "fewest jobs";
  registry.take(JobId{2}, *registry.choose({node, part}, any), part);
  EXPECT_FALSE(registry.choose({node, part}, any)) << "memory";
  EXPECT_FALSE(registry.choose({node, whole}, any)) << "all of it";
  EXPECT_EQ(registry.choose({node, rest}, any), (Shares{{"gpu", {0}}}));
  registry.take(JobId{3}, {{"gpu", {0}}}, rest);
  EXPECT_TRUE(registry.check(node));
  EXPECT_FALSE(registry.check(Generic{{"gpu", 2, Bytes{9}, true}}));
  EXPECT_FALSE(registry.check(Generic{{"gpu", 2, Bytes{10}, false}})) << "no longer shared";
}

TEST(UnitRegistry, UnitsOfUnknownMemoryAreSharedByTurns) {
  const Generic node{{"gpu", 1, Bytes{0}, true}};
  const Generic one{{"gpu", 1}};
  UnitRegistry registry;
  for (std::uint64_t job = 1; job < 9; ++job) {
    registry.take(JobId{job}, *registry.choose({node, one}, any), one);
  }
  EXPECT_TRUE(registry.check(node));
  const auto in_use_now = [](const std::string&, std::uint32_t index) { return index != 0; };
  EXPECT_FALSE(registry.choose({node, one}, in_use_now));
}

TEST(UnitRegistry, LeavesKeptUnits) {
  const Generic node{{"gpu", 2}, {"nic", 1}};
  const Generic one{{"gpu", 1}};
  const UnitRegistry registry;
  EXPECT_TRUE(registry.choose({node, one, Generic{{"gpu", 1}, {"nic", 1}}}, any));
  EXPECT_FALSE(registry.choose({node, one, Generic{{"gpu", 2}}}, any));
}

}  // namespace
}  // namespace score::gang
