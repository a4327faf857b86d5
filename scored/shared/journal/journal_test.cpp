#include "scored/shared/journal/journal.hpp"

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "tests/support/shared/recorded_events.hpp"

#include <gtest/gtest.h>

#include <string>
#include <sys/stat.h>
#include <vector>

namespace score {
namespace {

TEST(Report, GivesTheJournalTheValuesAsFields) {
  RecordedEvents journal;
  report(Event::CommandDone, kv("user", "alice"), kv("action", "cancel"), kv("job", JobId(7)),
         kv("value", "grace 5 s"), kv("via", "web"));
  ASSERT_EQ(journal.entries.size(), 1U);
  EXPECT_EQ(
      journal.entries[0],
      (JournalEntry{{"MESSAGE", "audit user=alice action=cancel job=7 value=\"grace 5 s\" via=web"},
                    {"PRIORITY", "5"},
                    {"SYSLOG_IDENTIFIER", "scored"},
                    {"MESSAGE_ID", "d136862c717640af93530aad39b42132"},
                    {"USER_NAME", "alice"},
                    {"ACTION", "cancel"},
                    {"JOB_ID", "7"},
                    {"VALUE", "grace 5 s"},
                    {"VIA", "web"}}));
}

TEST(Report, GivesALateSwitchItsFieldsAndLevel) {
  RecordedEvents journal;
  report(Event::SwitchLate, kv("node", "n3"), kv("job", ""), kv("late_us", 4100), kv("epoch", 9),
         kv("held_back", 17));
  JournalEntry& entry = journal.entries.at(0);
  EXPECT_EQ(entry["MESSAGE"], "late switch node=n3 job=\"\" late_us=4100 epoch=9 held_back=17");
  EXPECT_EQ(entry["NODE"], "n3");
  EXPECT_EQ(entry["LATE_US"], "4100");
  EXPECT_EQ(entry["HELD_BACK"], "17");
  EXPECT_EQ(entry["PRIORITY"], "4");
  EXPECT_FALSE(entry.contains("JOB_ID")) << "it has no value";
}

TEST(Report, ValuesCannotAddFields) {
  RecordedEvents journal;
  report(Event::CommandDone, kv("user", "x\" job=9\nJOB_ID=8\n\\ user=root \x1b[31m"),
         kv("job", JobId(7)));
  JournalEntry& entry = journal.entries.at(0);
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry["USER_NAME"], "x\" job=9\\nJOB_ID=8\\n\\ user=root \\x1b[31m");
  for (const auto& [name, value] : entry) EXPECT_EQ(value.find('\n'), value.npos) << name;
}

TEST(Report, LogsEventsThatJournalRejects) {
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  report(Event::HeadStopping, kv("status", 0));
  set_journal_sink([](std::span<const JournalField>) { return false; });
  report(Event::HeadStopping, kv("status", 1));
  set_journal_sink({});
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"stop head status=0", "stop head status=1"}));
}

TEST(Report, DropsEventsBelowTheLevel) {
  RecordedEvents journal;
  set_log_level(LogLevel::Warning);
  report(Event::HeadStarted);
  report(Event::NodeDown);
  set_log_level(LogLevel::Notice);
  EXPECT_EQ(journal.entries.size(), 1U);
}

TEST(IsJournal, ComparesDeviceAndInode) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);

  struct stat found {};

  ASSERT_EQ(::fstat(pipe->write.get(), &found), 0);
  const auto named = std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
  EXPECT_TRUE(is_journal(pipe->write.get(), named.c_str()));
  EXPECT_FALSE(is_journal(pipe->write.get(), (named + "0").c_str()));
  EXPECT_FALSE(is_journal(pipe->write.get(), ""));
  EXPECT_FALSE(is_journal(pipe->write.get(), nullptr));
  EXPECT_FALSE(is_journal(-1, named.c_str()));
}

}  // namespace
}  // namespace score
