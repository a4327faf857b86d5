#include "base/time.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score {
namespace {

TEST(ParseDuration, ReadsUnitsAndTheirSums) {
  EXPECT_EQ(parse_duration("250us").value(), 250us);
  EXPECT_EQ(parse_duration("50ms").value(), 50ms);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("5m").value(), 5min);
  EXPECT_EQ(parse_duration("1h").value(), 1h);
  EXPECT_EQ(parse_duration("2d").value(), 48h);
  EXPECT_EQ(parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(parse_duration("0.5s").value(), 500ms);
  EXPECT_EQ(parse_duration("1.000000001s").value(), 1s + 1ns);
  EXPECT_EQ(parse_duration("0").value(), 0s);
}

TEST(ParseDuration, ReadsClockForms) {
  EXPECT_EQ(parse_duration("01:02:03").value(), 1h + 2min + 3s);
  EXPECT_EQ(parse_duration("100:00:00").value(), 100h);
  EXPECT_EQ(parse_duration("90:30").value(), 90min + 30s);
  EXPECT_EQ(parse_duration("1-02:03:04").value(), 26h + 3min + 4s);
}

TEST(ParseDuration, AcceptsABareNumberOnlyWhereAllowed) {
  EXPECT_TRUE(parse_duration("5").error().is(Errc::Malformed));
  EXPECT_EQ(parse_duration("5", BareNumber::Minutes).value(), 5min);
  EXPECT_EQ(parse_duration("5", BareNumber::Seconds).value(), 5s);
  EXPECT_EQ(parse_duration("30s", BareNumber::Minutes).value(), 30s);
  EXPECT_EQ(parse_duration("1.5", BareNumber::Minutes).value(), 90s);
}

TEST(ParseDuration, RejectsEverythingElse) {
  for (const auto* text :
       {"",     "s",       "-1s",    "1 s",        " 1s",     "1x", "1m1h",      "1s1s",
        "1.s",  ".5s",     "1..2s",  "1sec",       "1:2:3:4", ":",  "1:",        ":1",
        "1:60", "1:60:00", "1-1:00", "1-24:00:00", "-1:00",   "1-", "--1:00:00", "."}) {
    EXPECT_TRUE(parse_duration(text, BareNumber::Minutes).error().is(Errc::Malformed)) << text;
  }
}

TEST(ParseDuration, RejectsTooLargeDurations) {
  for (const auto* text : {"300y", "106752d", "99999999999999999999s", "9223372036854775808ns",
                           "4000000000-00:00:00"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_EQ(parse_duration("9223372036854775807ns").value(), Duration::max());
  EXPECT_TRUE(parse_duration("9223372036854775807ns1d").error().is(Errc::Malformed));
  EXPECT_TRUE(parse_duration("106751d9999999h").error().is(Errc::TooLarge));
}

TEST(ParseDuration, SurvivesRandomText) {
  constexpr std::string_view kAlphabet = "0123456789.:-dhmsun ";
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 12, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    const auto result = parse_duration(text, BareNumber::Seconds);
    EXPECT_GE(result.value_or(0s), 0s) << text;
  }
}

TEST(FormatDuration, IsExactAndRoundTrips) {
  EXPECT_EQ(format_duration(100ms), "100ms");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(26h), "1d2h");
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(-250us), "-250us");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration duration(static_cast<std::int64_t>(random() >> (1 + random() % 62)));
    EXPECT_EQ(parse_duration(format_duration(duration)).value(), duration);
  }
  EXPECT_EQ(parse_duration(format_duration(Duration::max())).value(), Duration::max());
}

TEST(FormatDuration, PrintsTheSmallestValue) {
  EXPECT_EQ(format_duration(Duration::min()), "-9223372036854775808ns");
}

TEST(FormatHms, LooksLikeAJobTable) {
  EXPECT_EQ(format_hms(0s), "0:00:00");
  EXPECT_EQ(format_hms(3661s + 999ms), "1:01:01");
  EXPECT_EQ(format_hms(27h), "1-03:00:00");
  EXPECT_EQ(format_hms(-5s), "0:00:00");
}

TEST(FormatWall, IsUtc) {
  EXPECT_EQ(format_wall(WallTime(Duration(1'500ms))), "1970-01-01T00:00:01Z");
  EXPECT_EQ(format_wall(WallTime(1'764'000'000s)), "2025-11-24T16:00:00Z");
}

TEST(MonotonicNow, DoesNotGoBack) {
  const TimePoint first = monotonic_now();
  EXPECT_LE(first, monotonic_now());
}

}  // namespace
}  // namespace score
