#include "base/result.hpp"

#include "base/assert.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace score {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Errc::Malformed, "half of {}", n);
  return n / 2;
}

Status check(int n) {
  const auto result = half(n);
  if (!result) return result.error().with_context("check {}", "it");
  return {};
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(half(4).value(), 2);
  const auto odd = half(3);
  ASSERT_FALSE(odd);
  EXPECT_TRUE(odd.error().is(Errc::Malformed));
  EXPECT_FALSE(odd.error().is(Errc::TooLarge));
}

TEST(Result, CallersAddContextAndKeepTheCode) {
  EXPECT_TRUE(check(2));
  const auto status = check(3);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message(), "check it: half of 3: malformed");
  EXPECT_TRUE(status.error().is(Errc::Malformed));
}

TEST(Result, ComparesErrnoWithStandardConditions) {
  const Error error = fail(errno_code(ENOENT), "open {}", "x");
  EXPECT_TRUE(error.is(std::errc::no_such_file_or_directory));
  EXPECT_EQ(error.message(), "open x: No such file or directory");
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  auto result = make();
  ASSERT_TRUE(result);
  const std::unique_ptr<int> owned = *std::move(result);
  EXPECT_EQ(*owned, 5);
}

TEST(Result, TextIsAValueAndNotAnError) {
  const auto make = []() -> Result<std::string> { return "text"; };
  EXPECT_EQ(make().value(), "text");
}

TEST(Error, WithoutContextIsItsCode) {
  EXPECT_EQ(Error(Errc::Timeout).message(), "timed out");
  EXPECT_EQ(Error(Errc::Timeout).with_context("ping").message(), "ping: timed out");
  EXPECT_EQ(fmt::format("{}", Error(Errc::Closed)), "closed by the other side");
}

TEST(Errc, HasAMessageForEveryValue) {
  for (int value = 1; value <= static_cast<int>(Errc::Closed); ++value) {
    EXPECT_EQ(errc_category().message(value).find("unknown"), std::string::npos) << value;
  }
  EXPECT_EQ(errc_category().message(999), "unknown error 999");
}

TEST(AssertDeathTest, PrintsConditionAndContext) {
  EXPECT_DEATH(SCORE_ASSERT(1 == 2, "job={}", 7), "assertion failed: 1 == 2 at=.* job=7");
  EXPECT_DEATH(SCORE_ASSERT(false), "assertion failed: false");
}

}  // namespace
}  // namespace score
