#include "base/ids.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace score {
namespace {

static_assert(!std::is_convertible_v<std::uint64_t, JobId>, "no id out of a bare number");
static_assert(!std::is_convertible_v<JobId, std::uint64_t>, "no bare number out of an id");
static_assert(!std::is_constructible_v<NodeId, JobId>, "no id of one kind out of another");
static_assert(sizeof(NodeId) == 4 && sizeof(JobId) == 8 && sizeof(RequestId) == 16);

TEST(Id, OrdersByValue) {
  EXPECT_LT(Rank(1), Rank(2));
  EXPECT_EQ(Rank(7), Rank(7));
  EXPECT_EQ(JobId().value(), 0U);
}

TEST(Id, FormatsAsItsNumber) {
  EXPECT_EQ(fmt::format("{:>4}", JobId(17)), "  17");
}

TEST(Id, DifferentIdsHashDifferently) {
  const std::unordered_set<NodeId> nodes = {NodeId(1), NodeId(2), NodeId(1)};
  EXPECT_EQ(nodes.size(), 2U);
}

TEST(RequestId, RoundTripsThroughText) {
  const RequestId id{.high = 0x0123456789abcdef, .low = 0xf};
  EXPECT_EQ(id.to_string(), "0123456789abcdef000000000000000f");
  EXPECT_EQ(RequestId::parse(id.to_string()), id);
}

TEST(RequestId, RefusesOtherText) {
  EXPECT_FALSE(RequestId::parse(""));
  EXPECT_FALSE(RequestId::parse("0123456789abcdef000000000000000"));
  EXPECT_FALSE(RequestId::parse("0123456789abcdef000000000000000ff"));
  EXPECT_FALSE(RequestId::parse("0123456789abcdefg00000000000000f"));
  EXPECT_FALSE(RequestId::parse("-123456789abcdef000000000000000f"));
  EXPECT_FALSE(RequestId::parse("0x23456789abcdef000000000000000f"));
}

TEST(RequestId, RandomOnesDiffer) {
  std::unordered_set<RequestId> seen;
  for (int i = 0; i < 100; ++i) seen.insert(RequestId::random());
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_FALSE(seen.contains(RequestId()));
}

}  // namespace
}  // namespace score
