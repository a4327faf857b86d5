#include "base/lazy.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::inline base {
namespace {

TEST(Lazy, IsTheDefaultUntilItIsChanged) {
  Lazy<std::vector<int>> value;
  EXPECT_TRUE(value->empty());
  EXPECT_EQ(value, Lazy<std::vector<int>>());
  value.edit().push_back(3);
  EXPECT_EQ(*value, std::vector<int>{3});
  value.reset();
  EXPECT_TRUE(value->empty());
  EXPECT_EQ(sizeof(value), sizeof(void*));
}

TEST(Lazy, CopiesItsValue) {
  Lazy<std::string> first;
  first.edit() = "one";
  Lazy<std::string> second = first;
  second.edit() += " more";
  EXPECT_EQ(*first, "one");
  EXPECT_EQ(*second, "one more");
  const Lazy<std::string> unchanged;
  second = unchanged;
  EXPECT_TRUE(second->empty());
  second = std::move(first);
  EXPECT_EQ(*second, "one");
}

}  // namespace
}  // namespace score::inline base
