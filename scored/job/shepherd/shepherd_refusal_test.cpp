// These tests cover what a shepherd refuses: plans that cannot run, connections of other users,
// hostile bytes from peers and tasks.
#include "tests/support/job/test_node.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd::test {
namespace {

constexpr uid_t kNobody = 65534;

TestNode::Options as_nobody() {
  return {.user = getuid() == 0 ? kNobody : 0, .daemon = 0, .connect = true, .program = ""};
}

std::pair<int, std::string> refusal_of(const wire::LaunchSpec& spec) {
  TestNode node(as_nobody());
  node.prepare(spec);
  if (!node.wait([&] { return node.ready || node.refused; }) || !node.refused) return {0, ""};
  EXPECT_TRUE(node.wait_ended());
  return {node.refused->exit_code(), node.refused->reason()};
}

TEST(Shepherd, RefusesPlansThatCannotRun) {
  TemporaryDirectory directory;
  const auto plain = directory.path() + "/plain";
  std::ofstream(plain) << "text";
  chmod(directory.path().c_str(), 0755);
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(refusal_of(spec_of({"no-such-program"})),
            Answer(127, "executable no-such-program: not found in PATH"));
  EXPECT_EQ(refusal_of(spec_of({"./no/such"})), Answer(127, "executable ./no/such: not found"));
  EXPECT_EQ(refusal_of(spec_of({plain})),
            Answer(126, "executable " + plain + ": permission denied"));
  EXPECT_EQ(refusal_of(spec_of({"/tmp"})), Answer(126, "executable /tmp: is a directory"));
  auto spec = spec_of({"true"});
  spec.set_directory("/no/such/place");
  EXPECT_EQ(refusal_of(spec), Answer(126, "directory /no/such/place: No such file or directory"));
}

TEST(Shepherd, RefusesDirectoriesAndFilesOfOthers) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to change the user";
  TemporaryDirectory directory;  // 0700, owned by root
  auto spec = spec_of({"true"});
  spec.set_directory(directory.path());
  EXPECT_EQ(refusal_of(spec).first, 126);
  EXPECT_EQ(refusal_of(spec).second, "directory " + directory.path() + ": Permission denied");
  spec.set_directory("/tmp");
  spec.set_stdout_path(directory.path() + "/out");
  EXPECT_EQ(refusal_of(spec).first, 125);
  spec.set_stdout_path("");
  spec.set_stdin_path("/no/such/input");
  EXPECT_EQ(refusal_of(spec).second, "cannot open /no/such/input: No such file or directory");
  spec.set_stdin_path("");
  spec.set_stderr_path("err.%q");
  EXPECT_NE(refusal_of(spec).second.find("%q"), std::string::npos);
}

TEST(Shepherd, RefusesLimitsTheNodeDoesNotGrant) {
  auto spec = spec_of({"true"});
  auto* limit = spec.add_limits();
  limit->set_resource(7);  // RLIMIT_NOFILE
  limit->set_soft(1ULL << 40U);
  limit->set_hard(1ULL << 40U);
  EXPECT_NE(refusal_of(spec).second.find("limit on open files"), std::string::npos);
}

TEST(Shepherd, RunsWithOneMegabyteOfEnvironment) {
  auto spec = shell("env | wc -c");
  for (int i = 0; i < 16; ++i)
    spec.add_env("BIG" + std::to_string(i) + "=" + std::string(65536, 'x'));
  TestNode node;
  ASSERT_TRUE(node.run(spec, {.index = 0, .tasks_on_node = {4}}));
  for (const auto& [rank, text] : node.out) EXPECT_GT(std::stoul(text), 1U << 20U);
}

TEST(Shepherd, RefusesVariableTooLongForExec) {
  auto spec = spec_of({"true"});
  spec.add_env("HUGE=" + std::string(200'000, 'x'));
  const auto [code, reason] = refusal_of(spec);
  EXPECT_EQ(code, 126);
  EXPECT_EQ(reason, "environment variable HUGE of 200005 bytes: this system allows 131071");
}

TEST(Shepherd, PrintsExecFailureOnTheTasksStderr) {
  TemporaryDirectory directory;
  const auto script = directory.path() + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  chmod(script.c_str(), 0755);
  TestNode node;
  ASSERT_TRUE(node.run(spec_of({script})));
  EXPECT_EQ(node.exit_of(0)->code(), 127);
  EXPECT_EQ(node.err[0], "scored: node0: rank 0: exec " + script +
                             ": interpreter /no/such/interpreter: No such file or directory\n");
}

TEST(Shepherd, RunsScriptsWithoutInterpreterLine) {
  TemporaryDirectory directory;
  const auto script = directory.path() + "/script";
  std::ofstream(script) << "echo plain $1\n";
  chmod(script.c_str(), 0755);
  TestNode node;
  ASSERT_TRUE(node.run(spec_of({script, "arg"})));
  EXPECT_EQ(node.out[0], "plain arg\n");
}

wire::LaunchSpec batch(const std::string& text) {
  auto spec = spec_of({"./dir/train.sh", "one"});
  spec.set_script(text);
  spec.set_mpi(wire::LaunchSpec::NONE);
  return spec;
}

TEST(Shepherd, ScriptFileExistsWhileItRuns) {
  TestNode node;
  ASSERT_TRUE(
      node.run(batch("#!/bin/sh\necho $0 $1; cat $0 | head -1\n"
                     "ls /proc/self/fd | tr '\\n' ' '\n")));
  const auto& out = node.out[0];
  const std::string path = out.substr(0, out.find(' '));
  EXPECT_TRUE(path.starts_with("/tmp/scored-script-7.") && path.ends_with("/train.sh")) << out;
  EXPECT_EQ(out.substr(path.size()), " one\n#!/bin/sh\n0 1 2 3 ");  // 3: of ls
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_NE(access(path.substr(0, path.rfind('/')).c_str(), F_OK), 0);
}

TEST(Shepherd, MissingInterpreterIsReportedWithScript) {
  TestNode node;
  ASSERT_TRUE(node.run(batch("#!/no/such/interpreter -x\n")));
  EXPECT_EQ(node.exit_of(0)->code(), 127);
  EXPECT_EQ(node.err[0],
            "scored: node0: rank 0: exec ./dir/train.sh: interpreter /no/such/interpreter: "
            "No such file or directory\n");
}

// ---- hostile peers

bool is_answered_as(uid_t user, TestNode& node) {
  if (setresuid(user, user, user) != 0) return true;
  try {
    node.connect();
    node.send(wire::ShepherdResume());
    return node.wait([&] { return node.report.has_value(); }, std::chrono::seconds(5));
  } catch (const std::exception&) {
    return true;  // it could not even try to connect
  }
}

TEST(Shepherd, RefusesOtherUsers) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to change the user";
  TestNode node({.user = 0, .daemon = 0, .connect = false, .program = ""});
  const pid_t stranger = fork();
  if (stranger == 0) {
    _exit(is_answered_as(kNobody, node) ? 1 : 0);
  }
  int status = 0;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  node.connect();
  node.send(wire::ShepherdResume());
  EXPECT_TRUE(node.wait([&] { return node.report.has_value(); }));
}

TEST(Shepherd, AcceptsUserThatListens) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to change the user";
  constexpr uid_t kDaemon = 65533;
  TestNode node({.user = kNobody, .daemon = kDaemon, .connect = true, .program = ""});
  ASSERT_TRUE(node.run(shell("id -u")));
  EXPECT_EQ(node.out[0], "65534\n");
}

TEST(Shepherd, RandomBytesCloseOnlyConnection) {
  TestNode node;
  std::mt19937 random(20260101);
  for (int round = 0; round < 50; ++round) {
    std::string bytes(1 + random() % 200, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    if (round % 2 == 0)
      bytes = proto::encode_frame_bytes(proto::FrameType::ShepherdPrepare, "").substr(0, 8) + bytes;
    node.send_bytes(bytes);
    node.disconnect();
    node.connect();
  }
  // Well-formed frames carry truncated messages.
  node.send_bytes(proto::encode_frame_bytes(proto::FrameType::SignalTasks, "\xff"));
  node.send_bytes(proto::encode_frame_bytes(proto::FrameType::FenceDone, "\x1a\x7f"));
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_EQ(node.report->phase(), 0U);
  EXPECT_TRUE(node.run(shell("echo fine")));
  EXPECT_EQ(node.out[0], "fine\n");
}

TEST(Shepherd, RefusesInvalidPlans) {
  const auto refuses = [](const wire::ShepherdPrepare& prepare) {
    TestNode node;
    node.send(prepare);
    return node.wait([&] { return node.refused.has_value(); }) && node.wait_ended();
  };
  wire::ShepherdPrepare prepare;
  EXPECT_TRUE(refuses(prepare));  // no node
  prepare.add_tasks_on_node(4'000'000);
  prepare.set_spec(spec_of({"true"}).SerializeAsString());
  EXPECT_TRUE(refuses(prepare));  // too many tasks
  prepare.set_tasks_on_node(0, 1);
  prepare.set_node_index(7);
  EXPECT_TRUE(refuses(prepare));  // no such node
  prepare.set_node_index(0);
  prepare.set_spec(spec_of({}).SerializeAsString());
  EXPECT_TRUE(refuses(prepare));  // no command
  prepare.set_spec("\xff\xff");
  EXPECT_TRUE(refuses(prepare));
}

// ---- PMI through the sockets

TEST(Shepherd, GarbageOnPmiAbortsJob) {
  TestNode node;
  ASSERT_TRUE(
      node.run(shell("if [ $SCORE_RANK = 1 ]; then echo nonsense >&3; cat <&3; else sleep 0.2; fi"),
               {.index = 0, .tasks_on_node = {2}}));
  ASSERT_TRUE(node.abort);
  EXPECT_EQ(node.abort->rank(), 1U);
  EXPECT_EQ(node.abort->message(),
            "protocol error on its PMI connection: word nonsense: malformed");
  EXPECT_EQ(node.exit_of(0)->code(), 0);
}

TEST(Shepherd, AbortIsReportedBeforeTheTasksEnd) {
  TestNode node;
  ASSERT_TRUE(node.run(shell("echo 'cmd=abort exitcode=9 message=too hot' >&3; exit 9")));
  ASSERT_TRUE(node.abort.has_value());
  EXPECT_EQ(node.abort->code(), 9);
  EXPECT_EQ(node.abort->message(), "too hot");
}

TEST(Shepherd, FenceIsRepeatedAfterResume) {
  TestNode node;
  // Without scored-pmix next to it the shepherd also enters a fence of PMIx, to report the lack.
  std::vector<std::string> entered;
  const auto has_entered = [&](std::size_t count) {
    entered.clear();
    for (const auto& fence : node.fences) {
      if (!fence.pmix()) entered.push_back(fence.SerializeAsString());
    }
    return entered.size() == count;
  };
  node.prepare(shell("echo 'cmd=init pmi_version=1 pmi_subversion=1' >&3; read a <&3; "
                     "echo 'cmd=put key=k value=v' >&3; read a <&3; "
                     "echo 'cmd=barrier_in' >&3; read a <&3; echo $a; "
                     "echo 'cmd=get key=other' >&3; read a <&3; echo $a; "
                     "echo cmd=finalize >&3; read a <&3"),
               {.index = 0, .tasks_on_node = {1, 1}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return has_entered(1); }));
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return has_entered(2); }));
  EXPECT_EQ(entered[0], entered[1]);
  wire::FenceDone done;
  done.set_sequence(1);
  using namespace std::string_literals;
  done.set_key_values("\1\0\1\0kv\5\0\1\0other!"s);
  node.send(done);
  node.send(done);  // a repeated message changes nothing
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[0], "cmd=barrier_out rc=0\ncmd=get_result rc=0 msg=success value=!\n");
}

}  // namespace
}  // namespace score::shepherd::test
