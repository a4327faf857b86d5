// These tests run the real program, as this user or as root, and attack it as a stolen node daemon
// and as a hook could.
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "scored/privileged/hooks/protocol.hpp"
#include "scored/shared/config/hooks_config.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::hooks {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMs = 300'000;

class Hooks : public ::testing::Test {
 protected:
  struct Called {
    UniqueFd socket;
    SpawnedProcess program;
  };

  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-hooks-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    place_ = fs::canonical(name);
    fs::permissions(place_, fs::perms(0755));
    configure("prolog", "60s");
  }

  void TearDown() override { fs::remove_all(place_); }

  [[nodiscard]] std::string hook() const { return place_ / "hook"; }

  [[nodiscard]] std::string config() const { return place_ / "scored.toml"; }

  void configure(const std::string& key, const std::string& timeout) const {
    std::ofstream(config()) << "[hooks]\n"
                            << key << " = \"" << hook() << "\"\ntimeout = \"" << timeout << "\"\n";
    fs::permissions(config(), fs::perms(0644));
  }

  void write_hook(const std::string& script) const {
    std::ofstream(hook()) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(hook(), fs::perms(0755));
  }

  [[nodiscard]] Called call(std::vector<std::string> options = {}) const {
    auto pair = make_socket_pair(SOCK_SEQPACKET);
    EXPECT_TRUE(pair);
    SpawnSpec spec;
    spec.path = PROGRAM;
    spec.argv = {"scored-hooks", "--config", config()};
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    spec.environment = {"SECRET=1", "PATH=/evil"};
    spec.fds = {{pair->second.get(), 0}};
    auto child = spawn(spec);
    EXPECT_TRUE(child);
    return {std::move(pair->first), *std::move(child)};
  }

  static HookRequest request() {
    HookRequest made;
    made.hook = static_cast<std::uint32_t>(Hook::Prolog);
    made.user = geteuid();
    made.job = 7;
    made.attempt = 7 * 256;
    made.nodes = 2;
    made.tasks = 4;
    std::strcpy(made.node, "node01");
    std::strcpy(made.node_list, "node[00-01]");
    return made;
  }

  // Returns the reply; nothing if the program ended without one.
  static std::optional<HookReply> reply_of(const Called& called) {
    pollfd readable{called.socket.get(), POLLIN, 0};
    EXPECT_EQ(poll(&readable, 1, kPatienceMs), 1);
    HookReply reply;
    const ssize_t got = recv(called.socket.get(), &reply, sizeof reply, MSG_DONTWAIT);
    std::ignore = reap(called.program.pidfd.get(), true);
    if (got != sizeof reply) return std::nullopt;
    return reply;
  }

  [[nodiscard]] std::optional<HookReply> ask(const HookRequest& asked) const {
    const auto called = call();
    EXPECT_EQ(send(called.socket.get(), &asked, sizeof asked, MSG_NOSIGNAL), sizeof asked);
    return reply_of(called);
  }

  // Returns the failure that the reply has; empty for a hook that has passed.
  [[nodiscard]] std::string fault(const std::string& script) const {
    write_hook(script);
    const auto reply = ask(request());
    if (!reply) return "no reply";
    const bool has_passed = reply->outcome == static_cast<std::uint32_t>(Outcome::Passed);
    return has_passed ? "" : reply->text;
  }

  [[nodiscard]] std::string text_of(const std::string& name) const {
    return read_file(place_ / name, 65'536).value_or("");
  }

  fs::path place_;
};

TEST_F(Hooks, GetOnlyTheirOwnEnvironment) {
  ASSERT_EQ(
      fault("env | sort > " + (place_ / "env").string() + "; pwd > " + (place_ / "pwd").string()),
      "");
  const std::string seen = text_of("env");
  for (const char* line :
       {"SCORE_HOOK=prolog\n", "SCORE_JOB_ID=7\n", "SCORE_JOB_NODES=2\n", "SCORE_JOB_TASKS=4\n",
        "SCORE_NODE=node01\n", "SCORE_JOB_NODELIST=node[00-01]\n", "SCORE_JOB_USER="}) {
    EXPECT_NE(seen.find(line), std::string::npos) << line << " in " << seen;
  }
  EXPECT_EQ(seen.find("SECRET"), std::string::npos);
  EXPECT_EQ(seen.find("/evil"), std::string::npos);
  EXPECT_EQ(text_of("pwd"), "/\n");
}

TEST_F(Hooks, HaveNoDescriptorBesidesTheStandardOnes) {
  ASSERT_EQ(fault("exec ls /proc/self/fd > " + (place_ / "fds").string()), "");
  EXPECT_EQ(text_of("fds"), "0\n1\n2\n3\n") << "ls itself opens the directory";
}

TEST_F(Hooks, FailWithTheirLastLine) {
  EXPECT_EQ(fault("echo one; echo two >&2; echo; exit 3"), "two");
  EXPECT_EQ(fault("exit 3"), "it ended with status 3");
  EXPECT_EQ(fault("kill -9 $$"), "it was killed by signal 9");
}

TEST_F(Hooks, EscapeWhatTerminalsWouldObey) {
  EXPECT_EQ(fault("printf '\\033[2Jx\\n'; exit 1").find('\033'), std::string::npos);
}

TEST_F(Hooks, AreKilledAtTheirLimit) {
  configure("prolog", "1s");
  EXPECT_EQ(fault("echo waiting; sleep 1000"), "it did not end within 1s; its last line: waiting");
}

TEST_F(Hooks, MayNotPrintWithoutEnd) {
  EXPECT_NE(fault("exec yes").find("printed more than 16M"), std::string::npos);
  EXPECT_NE(fault("exec head -c 1000000000 /dev/zero").find("printed more than"),
            std::string::npos);
}

// The descendant leaves its session and its parent, and would hold the pipe.
TEST_F(Hooks, LeaveNoProcess) {
  const std::string pid = (place_ / "pid").string();
  ASSERT_EQ(fault("setsid sh -c '(echo $$ > " + pid + "; exec sleep 1000) &' ; while [ ! -s " +
                  pid + " ]; do sleep 0.01; done"),
            "");
  const auto left = parse_number<pid_t>(trim(text_of("pid")));
  ASSERT_TRUE(left);
  EXPECT_NE(kill(*left, 0), 0) << "process " << *left << " is alive";
}

TEST_F(Hooks, EndWhenTheirCallerIsGone) {
  const std::string pid = (place_ / "pid").string();
  write_hook("echo $$ > " + pid + ".new; mv " + pid + ".new " + pid + "; exec sleep 1000");
  auto called = call();
  const HookRequest asked = request();
  ASSERT_EQ(send(called.socket.get(), &asked, sizeof asked, 0), sizeof asked);
  while (!fs::exists(pid)) poll(nullptr, 0, 5);
  called.socket.reset();
  ASSERT_TRUE(reap(called.program.pidfd.get(), true));
  EXPECT_NE(kill(parse_number<pid_t>(trim(text_of("pid"))).value_or(1), 0), 0);
}

TEST_F(Hooks, AreAbsentIfNotConfigured) {
  HookRequest asked = request();
  asked.hook = static_cast<std::uint32_t>(Hook::Epilog);
  const auto reply = ask(asked);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->outcome, static_cast<std::uint32_t>(Outcome::Absent));
}

TEST_F(Hooks, AreRefusedIfOthersCouldChangeThem) {
  write_hook("touch " + (place_ / "ran").string());
  fs::permissions(hook(), fs::perms(0757));
  const auto reply = ask(request());
  ASSERT_TRUE(reply);
  EXPECT_NE(std::string(reply->text).find("writable by others"), std::string::npos);
  fs::permissions(hook(), fs::perms(0755));
  fs::permissions(config(), fs::perms(0666));
  EXPECT_EQ(ask(request())->outcome, static_cast<std::uint32_t>(Outcome::Failed));
  EXPECT_FALSE(fs::exists(place_ / "ran"));
}

TEST_F(Hooks, OfAnotherUserAreRefusedByRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  write_hook("touch " + (place_ / "ran").string());
  ASSERT_EQ(chown(hook().c_str(), 65534, 65534), 0);
  EXPECT_NE(std::string(ask(request())->text).find("belongs to user 65534"), std::string::npos);
  EXPECT_FALSE(fs::exists(place_ / "ran"));
}

TEST_F(Hooks, AreRunOnlyForTheDaemonUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a user besides this one";
  write_hook("touch " + (place_ / "ran").string());
  const auto called = call({"--daemon-user", "nobody"});
  const HookRequest asked = request();
  std::ignore = send(called.socket.get(), &asked, sizeof asked, MSG_NOSIGNAL);
  EXPECT_FALSE(reply_of(called));
  EXPECT_FALSE(fs::exists(place_ / "ran"));
}

TEST_F(Hooks, RefuseMalformedRequests) {
  write_hook("touch " + (place_ / "ran").string());
  std::vector<HookRequest> wrong(9, request());
  wrong[0].magic = 0;
  wrong[1].version = 2;
  wrong[2].hook = static_cast<std::uint32_t>(Hook::Submit);
  wrong[3].hook = 1'000;
  wrong[4].job = 0;
  wrong[5].attempt = 0;
  std::memset(wrong[6].node, 'x', sizeof wrong[6].node);
  std::strcpy(wrong[7].node_list, "a;reboot");
  std::strcpy(wrong[8].node, "a\nb");
  for (const HookRequest& one : wrong) EXPECT_FALSE(ask(one)) << &one - wrong.data();
  EXPECT_FALSE(fs::exists(place_ / "ran"));
}

TEST_F(Hooks, RefuseTruncatedAndRandomRequests) {
  write_hook("touch " + (place_ / "ran").string());
  std::mt19937 random(1);
  const HookRequest sound = request();
  std::string bytes(reinterpret_cast<const char*>(&sound), sizeof sound);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{39}, bytes.size() - 1, bytes.size() + 1}) {
    const auto called = call();
    const std::string sent = size <= bytes.size() ? bytes.substr(0, size) : bytes + "x";
    ASSERT_GE(send(called.socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL), 0);
    EXPECT_FALSE(reply_of(called)) << size;
  }
  for (int round = 0; round < 20; ++round) {
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto called = call();
    ASSERT_GT(send(called.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    EXPECT_FALSE(reply_of(called));
  }
  EXPECT_FALSE(fs::exists(place_ / "ran"));
}

TEST_F(Hooks, SubmitReadsAndAnswersThroughFiles) {
  configure("submit", "60s");
  write_hook("read line; echo \"{\\\"name\\\": \\\"$line\\\"}\"; echo noise >&2");
  UniqueFd input(memfd_create("in", 0));
  UniqueFd output(memfd_create("out", 0));
  ASSERT_TRUE(write_all(input.get(), "hello\n"));
  lseek(input.get(), 0, SEEK_SET);
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  SpawnSpec spec;
  spec.path = PROGRAM;
  spec.argv = {"scored-hooks", "--config", config(), "--submit"};
  spec.fds = {{pair->second.get(), 0}, {input.get(), kSubmitInput}, {output.get(), kSubmitOutput}};
  auto child = spawn(spec);
  ASSERT_TRUE(child);
  HookRequest asked;
  asked.hook = static_cast<std::uint32_t>(Hook::Submit);
  ASSERT_EQ(send(pair->first.get(), &asked, sizeof asked, 0), sizeof asked);
  const auto reply = reply_of({std::move(pair->first), *std::move(child)});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->outcome, static_cast<std::uint32_t>(Outcome::Passed)) << reply->text;
  lseek(output.get(), 0, SEEK_SET);
  EXPECT_EQ(read_all(output.get(), 1'000).value_or(""), "{\"name\": \"hello\"}\n");
}

}  // namespace
}  // namespace score::hooks
