// Tests the version negotiation, and the texts of the wire's errors (errc.cpp).

#include "proto/frames/hello.hpp"

#include "proto/frames/errc.hpp"

#include <gtest/gtest.h>

#include <set>

namespace score::proto {
namespace {

TEST(Hello, ChoosesTheHighestVersionThatBothSpeak) {
  EXPECT_EQ(*choose_version({1, 4}, "node00", {2, 3}), 3U);
  EXPECT_EQ(*choose_version({1, 2}, "node00", {2, 3}), 2U);
  EXPECT_EQ(*choose_version({3, 3}, "node00", {1, 9}), 3U);
  EXPECT_EQ(*choose_version({1, 1}, "client"), 1U);
}

TEST(Hello, ReportsMissingVersionInOneLine) {
  const auto none = choose_version({3, 4}, "server", {1, 1});
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(none.error().is(WireErrc::BadVersion));
  EXPECT_EQ(none.error().context(), "server speaks versions 3..4, this program 1..1");
}

TEST(Hello, RejectsInvalidRanges) {
  EXPECT_FALSE(choose_version({4, 1}, "x", {1, 9}).has_value());
  EXPECT_FALSE(choose_version({0, 0}, "x").has_value());
  EXPECT_FALSE(choose_version({0xffffffff, 0xffffffff}, "x").has_value());
  EXPECT_EQ(*choose_version({0, 0xffffffff}, "x", {1, 1}), 1U);
}

TEST(Hello, ChecksTheChosenVersion) {
  EXPECT_TRUE(check_chosen(2, "server", {1, 3}).has_value());
  EXPECT_EQ(check_chosen(4, "server", {1, 3}).error().context(),
            "server chose version 4, this program speaks 1..3");
  EXPECT_FALSE(check_chosen(0, "server", {1, 3}).has_value());
}

TEST(WireErrors, TextsAreDistinct) {
  std::set<std::string> texts;
  for (int i = 1; i <= static_cast<int>(WireErrc::BadPeer); ++i) {
    texts.insert(wire_category().message(i));
  }
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(WireErrc::BadPeer));
  EXPECT_EQ(wire_category().message(999), "unknown error 999");
}

}  // namespace
}  // namespace score::proto
