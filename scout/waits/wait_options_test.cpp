#include "scout/waits/wait_options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <random>

namespace score::scout {
namespace {

// The time is 2026-11-23 12:00:00 UTC.
constexpr WallTime kNoon = WallTime(Duration(std::chrono::seconds(1'795'435'200)));

class WaitOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }

  static std::string ahead(std::string_view word) {
    const auto at = parse_ahead(word, kNoon);
    return at ? format_wall(WallTime(Duration(*at))) : "refused";
  }

  static std::string after(std::string_view text) {
    wire::JobConditions conditions;
    if (auto read = parse_after(text, conditions); !read) return read.error().context();
    std::string out = conditions.singleton() ? "singleton" : conditions.any() ? "any" : "";
    for (const auto& one : conditions.after()) {
      out += fmt::format(" {}:{}", static_cast<int>(one.kind()), one.job());
    }
    return out;
  }
};

TEST_F(WaitOptionsTest, ListsAreParsed) {
  EXPECT_EQ(after("afterok:12"), " 2:12");
  EXPECT_EQ(after("afterok:12:13,afterany:14,after:15,afternotok:16"), " 2:12 2:13 1:14 0:15 3:16");
  EXPECT_EQ(after("singleton,after:1"), "singleton 0:1");
  EXPECT_EQ(after("afterok:1?afterany:2:3"), "any 2:1 1:2 1:3");
}

TEST_F(WaitOptionsTest, InvalidListsAreRefused) {
  EXPECT_EQ(
      after("12"),
      "'12' is not afterok:JOB, afterany:JOB, afternotok:JOB, after:JOB[+MINUTES] or singleton");
  EXPECT_EQ(after("afterok:x"), "'x' is not a job id");
  for (const char* text : {"", ",", "afterok", "afterok:", "afterok:0", "afterok:1,", "afterok:-1",
                           "after ok:1", "afterok:1?", "singleton:1", "afterok:1:"}) {
    EXPECT_NE(after(text).find("is not"), std::string::npos) << text;
  }
  EXPECT_EQ(after("afterok:1?afterok:2,afterok:3"),
            "join the parts with ',' (all must hold) or with '?' (one is enough)");
  EXPECT_EQ(after("afterok:1?singleton"), "singleton cannot be joined with '?'");
  std::string many = "afterok:1";
  for (int i = 0; i < 1'000; ++i) many += ":1";
  EXPECT_EQ(after(many), "a job can wait for at most 1000 jobs");
}

TEST_F(WaitOptionsTest, FutureTimesAreParsed) {
  EXPECT_EQ(ahead("16:00"), "2026-11-23T16:00:00Z");
  EXPECT_EQ(ahead("11:59"), "2026-11-24T11:59:00Z");
  EXPECT_EQ(ahead("16:00:30"), "2026-11-23T16:00:30Z");
  EXPECT_EQ(ahead("2h"), "2026-11-23T14:00:00Z");
  EXPECT_EQ(ahead("now+90s"), "2026-11-23T12:01:30Z");
  EXPECT_EQ(ahead("now+90"), "2026-11-23T12:01:30Z");
  EXPECT_EQ(ahead("now+1hour"), "2026-11-23T13:00:00Z");
  EXPECT_EQ(ahead("now+2hours"), "2026-11-23T14:00:00Z");
  EXPECT_EQ(ahead("now+1minute"), "2026-11-23T12:01:00Z");
  EXPECT_EQ(ahead("now+30seconds"), "2026-11-23T12:00:30Z");
  EXPECT_EQ(ahead("now+1day"), "2026-11-24T12:00:00Z");
  EXPECT_EQ(ahead("now+1week"), "2026-11-30T12:00:00Z");
  EXPECT_EQ(ahead("2026-12-01"), "2026-12-01T00:00:00Z");
  EXPECT_EQ(ahead("2026-12-01T08:30"), "2026-12-01T08:30:00Z");
  EXPECT_EQ(ahead("2026-12-01 08:30:59"), "2026-12-01T08:30:59Z");
}

TEST_F(WaitOptionsTest, InvalidTimesAreRefused) {
  for (const char* word :
       {"", "soon", "25:00", "16:61", "2026-02-31", "2026-13-01", "now+", "now+1fortnight",
        "now+hour", "now+-1hour", "2hours", "12", "-2h", "2026-12-01T", "16:00x"}) {
    EXPECT_EQ(ahead(word), "refused") << word;
  }
}

TEST_F(WaitOptionsTest, PastTimesAreRefused) {
  wire::Submit submit;
  WaitOptions options;
  options.begin = "2020-01-01";
  EXPECT_EQ(fill_conditions(options, kNoon, submit).error().context(),
            "--begin 2020-01-01: 2020-01-01 00:00:00 is in the past");
  options.begin = {};
  options.deadline = "2026-11-23T11:00";
  EXPECT_FALSE(fill_conditions(options, kNoon, submit));
}

TEST_F(WaitOptionsTest, DeadlineTimeOfDayFollowsTheBegin) {
  const auto deadline = [](const std::string& begin, const std::string& text) {
    wire::Submit submit;
    WaitOptions options;
    options.begin = begin;
    options.deadline = text;
    EXPECT_TRUE(fill_conditions(options, kNoon, submit));
    return format_wall(WallTime(Duration(submit.conditions().deadline_wall_ns())));
  };
  EXPECT_EQ(deadline("", "06:00"), "2026-11-24T06:00:00Z");
  EXPECT_EQ(deadline("22:00", "06:00"), "2026-11-24T06:00:00Z");
  EXPECT_EQ(deadline("11:00", "06:00"), "2026-11-25T06:00:00Z");  // begins tomorrow
  EXPECT_EQ(deadline("22:00", "23:00"), "2026-11-23T23:00:00Z");
  EXPECT_EQ(deadline("22:00", "12h"), "2026-11-24T00:00:00Z");  // from now
}

TEST_F(WaitOptionsTest, BeginNowAddsNoCondition) {
  wire::Submit submit;
  WaitOptions options;
  options.begin = "now";
  EXPECT_TRUE(fill_conditions(options, kNoon, submit));
  EXPECT_FALSE(submit.has_conditions());
  options.deadline = "now";
  EXPECT_FALSE(fill_conditions(options, kNoon, submit));
}

TEST_F(WaitOptionsTest, NoOptionsGiveNoConditions) {
  wire::Submit submit;
  EXPECT_TRUE(fill_conditions({}, kNoon, submit));
  EXPECT_FALSE(submit.has_conditions());
}

TEST_F(WaitOptionsTest, RandomBytesAreHandled) {
  std::mt19937 random(4);
  constexpr std::string_view kBytes = "afternoksig:,0123456789-T :\x01\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 30, '\0');
    for (char& byte : text) byte = kBytes[random() % kBytes.size()];
    wire::JobConditions conditions;
    (void)parse_after(text, conditions);
    (void)parse_ahead(text, kNoon);
  }
  const std::string good = "afterok:12:13,afterany:14,singleton";
  for (std::size_t length = 0; length < good.size(); ++length) {
    (void)after(std::string_view(good).substr(0, length));
  }
}

}  // namespace
}  // namespace score::scout
