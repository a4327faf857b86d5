#include "base/os/log.hpp"

#include "base/ids.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

class LogTest : public testing::Test {
 protected:
  LogTest() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      lines.push_back(fmt::format("<{}>{}", static_cast<int>(level), line));
    });
  }

  ~LogTest() override {
    set_log_sink({});
    set_log_level(LogLevel::Notice);
  }

  std::vector<std::string> lines;
};

TEST_F(LogTest, WritesTextThenKeysAndValues) {
  log_notice("start job", kv("job", JobId(7)), kv("user", "alice"));
  EXPECT_EQ(lines, (std::vector<std::string>{"<5>start job job=7 user=alice"}));
}

TEST_F(LogTest, QuotesValuesThatCouldForgeLines) {
  log_error("refuse name", kv("name", "x\n<2>root=1"), kv("err", Error(Errc::Malformed, "a b")));
  EXPECT_EQ(lines[0], "<3>refuse name name=\"x\\n<2>root=1\" err=\"a b: malformed\"");
}

TEST_F(LogTest, DropsLinesBelowTheLevel) {
  log_info("hidden");
  set_log_level(LogLevel::Info);
  log_info("shown");
  log_debug("hidden");
  EXPECT_EQ(lines, (std::vector<std::string>{"<6>shown"}));
  EXPECT_FALSE(log_enabled(LogLevel::Debug));
}

TEST_F(LogTest, LimiterCountsSuppressedLines) {
  LogLimiter limiter(1, 2);
  const TimePoint start(10s);
  EXPECT_TRUE(limiter.allow(start));
  EXPECT_TRUE(limiter.allow(start));
  EXPECT_FALSE(limiter.allow(start));
  EXPECT_FALSE(limiter.allow(start + 900ms));
  EXPECT_TRUE(limiter.allow(start + 1s));
  EXPECT_EQ(limiter.take_suppressed(), 2U);
  EXPECT_EQ(limiter.take_suppressed(), 0U);
}

TEST(Log, PipeGetsPriorityAndBoundedLines) {
  testing::internal::CaptureStderr();
  log_error("stop", kv("text", std::string(5000, 'x')));
  log_event(LogLevel::Error, std::string(5000, 'v'));
  const auto text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("<3>"), 0U);
  const auto lines = split(trim(text), '\n');
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_LT(lines[0].size(), 1200U);
  EXPECT_EQ(lines[1].size(), 4095U);
}

TEST(ParseLogLevel, KnowsFiveNames) {
  EXPECT_EQ(parse_log_level("error").value(), LogLevel::Error);
  EXPECT_EQ(parse_log_level("debug").value(), LogLevel::Debug);
  EXPECT_TRUE(parse_log_level("loud").error().is(Errc::Malformed));
}

}  // namespace
}  // namespace score
