#include "scored/job/pmix/group_part.hpp"

#include <gtest/gtest.h>

namespace score::pmix {
namespace {

const GroupPart kFirst{7, "halves", "one"};
const GroupPart kSecond{9, "halves", std::string("t\0wo", 4)};

TEST(GroupPart, JoinTakesFirstContextAndAllData) {
  const auto whole = join_parts(encode_part(kFirst) + encode_part(kSecond));
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (GroupPart{7, "halves", std::string("onet\0wo", 7)}));
}

TEST(GroupPart, PartsOfDifferentGroupsAreRefused) {
  EXPECT_FALSE(join_parts(encode_part(kFirst) + encode_part({9, "thirds", "two"})));
}

TEST(GroupPart, TruncatedPartsAreRefused) {
  const std::string whole = encode_part(kFirst) + encode_part(kSecond);
  const std::size_t first = encode_part(kFirst).size();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(join_parts(std::string_view(whole).substr(0, length)).has_value(), length == first)
        << length;
  }
}

TEST(GroupPart, CountsBeyondTheEndAreRefused) {
  std::string broken = encode_part(kFirst);
  for (std::size_t at = sizeof(std::uint64_t); at < 2 * sizeof(std::uint64_t); ++at) {
    std::string part = broken;
    part[at] = '\xff';
    EXPECT_FALSE(join_parts(part)) << at;
  }
}

}  // namespace
}  // namespace score::pmix
