// The journal's side of the protocol is decoded here as systemd.io/JOURNAL_NATIVE_PROTOCOL says.
#include "scored/head/journal.hpp"

#include "base/fd.hpp"
#include "scored/head/head_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace score::head {
namespace {

using Entry = std::map<std::string, std::string>;

// The fields of a datagram; "?" holds what is left of one that is cut off, or names a field twice.
Entry decode(std::string_view bytes) {
  Entry entry;
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of("=\n");
    if (end == bytes.npos) break;
    const std::string name(bytes.substr(0, end));
    const bool is_binary = bytes[end] == '\n';
    bytes.remove_prefix(end + 1);
    std::uint64_t size = bytes.find('\n');
    if (is_binary) {
      if (bytes.size() < sizeof size) break;
      std::memcpy(&size, bytes.data(), sizeof size);
      bytes.remove_prefix(sizeof size);
    }
    if (size >= bytes.size() || bytes[size] != '\n') break;
    if (!entry.emplace(name, bytes.substr(0, size)).second) break;
    bytes.remove_prefix(size + 1);
  }
  if (!bytes.empty()) entry["?"] = bytes;
  return entry;
}

std::string id_of(std::string_view line) {
  return decode(journal_entry(LogLevel::Notice, line))["MESSAGE_ID"];
}

TEST(JournalEntry, HasTheFieldsOfTheLine) {
  const Entry entry = decode(journal_entry(
      LogLevel::Notice, "audit user=alice action=cancel job=7 value=\"grace 5 s\" via=web"));
  EXPECT_EQ(entry,
            (Entry{{"MESSAGE", "audit user=alice action=cancel job=7 value=\"grace 5 s\" via=web"},
                   {"PRIORITY", "5"},
                   {"SYSLOG_IDENTIFIER", "scored"},
                   {"MESSAGE_ID", "d136862c717640af93530aad39b42132"},
                   {"USER_NAME", "alice"},
                   {"ACTION", "cancel"},
                   {"JOB_ID", "7"},
                   {"VALUE", "grace 5 s"},
                   {"VIA", "web"}}));
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
  Entry entry = decode(journal_entry(LogLevel::Notice, line));
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry["ACTION"], "hold");
  EXPECT_EQ(entry["USER_NAME"], "x\" job=9\\nJOB_ID=8\\n\\ user=root \\x1b[31m");
  EXPECT_EQ(entry["MESSAGE"], line);
  EXPECT_EQ(entry.count("?"), 0U);
}

TEST(JournalEntry, GivesTheLengthOfWhatHasALineEnd) {
  const std::string line = "audit user=\"a\nJOB_ID=8\" job=7";  // base would not write it
  Entry entry = decode(journal_entry(LogLevel::Notice, line));
  EXPECT_EQ(entry["MESSAGE"], line);
  EXPECT_EQ(entry["USER_NAME"], "a\nJOB_ID=8");
  EXPECT_EQ(entry["JOB_ID"], "7");
  EXPECT_EQ(entry.count("?"), 0U);
}

TEST(JournalEntry, BearsLinesThatAreCutOff) {
  const std::string whole = R"(audit user="a \" \\ b" action=hold job=7)";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_EQ(decode(journal_entry(LogLevel::Notice, whole.substr(0, size))).count("?"), 0U);
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

// A journal that only listens, beside the head's database.
class JournalTest : public HeadFixture {
 protected:
  void SetUp() override {
    HeadFixture::SetUp();
    path_ = directory_ + "/journal";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(path_, address.sun_path);
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    testing::internal::CaptureStderr();
    is_captured_ = true;
  }

  void TearDown() override {
    set_log_sink({});
    if (is_captured_) testing::internal::GetCapturedStderr();
    HeadFixture::TearDown();
  }

  std::string stderr_so_far() {
    is_captured_ = false;
    return testing::internal::GetCapturedStderr();
  }

  // Adds what came.
  std::vector<Entry>& entries() {
    std::array<char, 16'384> bytes{};
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got < 0) return entries_;
      entries_.push_back(decode({bytes.data(), static_cast<std::size_t>(got)}));
    }
  }

  // How many entries have this value.
  long count(const std::string& field, const std::string& value) {
    return std::ranges::count_if(entries(), [&](Entry& entry) { return entry[field] == value; });
  }

  std::string path_;
  UniqueFd socket_;
  std::vector<Entry> entries_;
  bool is_captured_ = false;
};

TEST_F(JournalTest, GetsKnownKindsAndStderrTheRest) {
  log_to_journal(path_);
  log_error("task failed", kv("task", "timer"));
  log_notice("start job", kv("job", JobId(7)), kv("user", "alice"), kv("nodes", "n[0-1]"));
  ASSERT_EQ(entries().size(), 1U);
  EXPECT_EQ(entries_[0]["MESSAGE"], "start job job=7 user=alice nodes=n[0-1]");
  EXPECT_EQ(stderr_so_far(), "<3>task failed task=timer\n");
}

TEST_F(JournalTest, LeavesWhatItCannotTakeToStderr) {
  for (const auto& path : {directory_ + "/none", std::string(200, '/'), std::string()}) {
    log_to_journal(path);
    log_notice("stop head", kv("status", 0));
  }
  EXPECT_EQ(entries().size(), 0U);
  const std::string line = "<5>stop head status=0\n";
  EXPECT_EQ(stderr_so_far(), line + line + line);
}

TEST_F(JournalTest, KnowsTheLinesOfTheHead) {
  log_to_journal(path_);
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  wire::SetQuantum quantum;
  quantum.set_quantum_ns(Duration(50ms).count());
  FakeClient operating = connect(UserId(1002));
  operating.say(quantum);
  wire::CancelJob cancel;
  cancel.set_job(1);
  operating.say(cancel);
  for (FakeNode* node : {&first, &second}) {
    Exited exited;
    exited.attempt = attempt;
    exited.exits = {{Rank(node == &first ? 0U : 1U), 0, 15}};
    node->say(TaskEnded{attempt, exited.exits[0]});
    node->say(exited);
  }
  settle();
  head_->node_lost(NodeId(1), *second.connection);
  for (int i = 0; i < 20; ++i) {  // n0 lives on
    first.session->dispatch(frame_of(wire::Heartbeat()));
    pass(1s);
  }
  const std::string errors = stderr_so_far();
  EXPECT_EQ(count("MESSAGE_ID", "acd52845365c41fc8c41d2b3b9597fb9"), 2) << "nodes up\n" << errors;
  EXPECT_EQ(count("MESSAGE_ID", "c20e73204a49401998e4c36ef5992d5a"), 1) << "start job\n" << errors;
  EXPECT_EQ(count("MESSAGE_ID", "4cadf51f3d2f4587bd10414e633ee8b1"), 1) << "quantum\n" << errors;
  EXPECT_EQ(count("MESSAGE_ID", "d136862c717640af93530aad39b42132"), 1) << "cancel\n" << errors;
  EXPECT_EQ(count("MESSAGE_ID", "07b20d861a7d43c2b2a0f99c80ab8f12"), 1) << "end job\n" << errors;
  EXPECT_EQ(count("MESSAGE_ID", "6eb31b18a0da4116afc8c878962017ae"), 1) << "down\n" << errors;
  EXPECT_EQ(count("JOB_ID", "1"), 3);
  EXPECT_EQ(count("USER_NAME", "u1002"), 2);
  EXPECT_EQ(count("NODE", "n1"), 2);
}

}  // namespace
}  // namespace score::head
