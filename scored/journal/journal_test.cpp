#include "scored/journal/journal.hpp"

#include "base/os/fd.hpp"
#include "scored/journal/journal_reader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace score {
namespace {

std::string id_of(std::string_view line) {
  return decode_entry(journal_entry(LogLevel::Notice, line))["MESSAGE_ID"];
}

TEST(JournalEntry, HasTheFieldsOfTheLine) {
  const JournalEntry entry = decode_entry(journal_entry(
      LogLevel::Notice, "audit user=alice action=cancel job=7 value=\"grace 5 s\" via=web"));
  EXPECT_EQ(
      entry,
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

TEST(JournalEntry, HasTheFieldsOfALateSwitch) {
  JournalEntry entry = decode_entry(journal_entry(
      LogLevel::Warning, "late switch node=n3 job=7 late_us=4100 epoch=9 held_back=17"));
  EXPECT_EQ(entry["NODE"], "n3");
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry["LATE_US"], "4100");
  EXPECT_EQ(entry["HELD_BACK"], "17");
  EXPECT_EQ(entry["PRIORITY"], "4");
}

TEST(JournalEntry, TellsKindsOfOneVerbApartByAValue) {
  EXPECT_EQ(id_of("change node node=n0 state=down"), "6eb31b18a0da4116afc8c878962017ae");
  EXPECT_EQ(id_of("change node node=n0 state=up"), "acd52845365c41fc8c41d2b3b9597fb9");
  EXPECT_EQ(id_of("audit user=a action=\"set quantum\""), "4cadf51f3d2f4587bd10414e633ee8b1");
  EXPECT_EQ(id_of("audit user=a action=\"set slots\""), "d136862c717640af93530aad39b42132");
}

TEST(JournalEntry, IsEmptyForOtherLines) {
  for (const char* line :
       {"", "=", "a=b", "audits user=a", "start jobs", "change node state=suspect", "change node",
        "refuse client: too many uid=1", "reload file=audit"}) {
    EXPECT_EQ(journal_entry(LogLevel::Notice, line), "") << line;
  }
}

TEST(JournalEntry, LetsNoValueAddAField) {
  const std::string hostile = "x\" job=9\nJOB_ID=8\n\\ user=root \x1b[31m";
  std::string line;
  set_log_sink([&line](LogLevel, std::string_view text) { line = text; });
  log_notice("audit", kv("user", hostile), kv("action", "hold"), kv("job", JobId(7)));
  set_log_sink({});
  JournalEntry entry = decode_entry(journal_entry(LogLevel::Notice, line));
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry["ACTION"], "hold");
  EXPECT_EQ(entry["USER_NAME"], "x\" job=9\\nJOB_ID=8\\n\\ user=root \\x1b[31m");
  EXPECT_EQ(entry["MESSAGE"], line);
  EXPECT_EQ(entry.count("?"), 0U);
}

TEST(JournalEntry, GivesTheLengthOfWhatHasALineEnd) {
  const std::string line = "audit user=\"a\nJOB_ID=8\" job=7";  // base would not write it
  JournalEntry entry = decode_entry(journal_entry(LogLevel::Notice, line));
  EXPECT_EQ(entry["MESSAGE"], line);
  EXPECT_EQ(entry["USER_NAME"], "a\nJOB_ID=8");
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry.count("?"), 0U);
}

TEST(JournalEntry, BearsLinesThatAreCutOff) {
  const std::string whole = R"(audit user="a \" \\ b" action=hold job=7)";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_EQ(decode_entry(journal_entry(LogLevel::Notice, whole.substr(0, size))).count("?"), 0U);
  }
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

class LogToJournal : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "journal.XXXXXX";
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    directory_ = made;
    path_ = directory_ + "/journal";
    journal_.emplace(path_);
    ASSERT_TRUE(journal_->is_open());
    testing::internal::CaptureStderr();
    is_captured_ = true;
  }

  void TearDown() override {
    set_log_sink({});
    if (is_captured_) testing::internal::GetCapturedStderr();
    std::filesystem::remove_all(directory_);
  }

  std::string stderr_so_far() {
    is_captured_ = false;
    return testing::internal::GetCapturedStderr();
  }

  std::string directory_, path_;
  std::optional<JournalReader> journal_;
  bool is_captured_ = false;
};

TEST_F(LogToJournal, GetsKnownKindsAndStderrTheRest) {
  log_to_journal(path_);
  log_error("task failed", kv("task", "timer"));
  log_notice("start job", kv("job", JobId(7)), kv("user", "alice"), kv("nodes", "n[0-1]"));
  ASSERT_EQ(journal_->entries().size(), 1U);
  EXPECT_EQ(journal_->entries()[0]["MESSAGE"], "start job job=7 user=alice nodes=n[0-1]");
  EXPECT_EQ(stderr_so_far(), "<3>task failed task=timer\n");
}

TEST_F(LogToJournal, LeavesWhatItCannotTakeToStderr) {
  for (const auto& path : {directory_ + "/none", std::string(200, '/'), std::string()}) {
    log_to_journal(path);
    log_notice("stop head", kv("status", 0));
  }
  EXPECT_EQ(journal_->entries().size(), 0U);
  const std::string line = "<5>stop head status=0\n";
  EXPECT_EQ(stderr_so_far(), line + line + line);
}

}  // namespace
}  // namespace score
