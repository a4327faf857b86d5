#include "scored/shepherd/test_node.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <signal.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd::test {
namespace {

constexpr uid_t kNobody = 65534;
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kMostMemory = 1U << 30U;  // it keeps what was freed
#else
constexpr std::size_t kMostMemory = 16U << 20U;
#endif

TestNode::Options as_nobody() {
  return {.user = getuid() == 0 ? kNobody : 0, .connect = true, .program = ""};
}

bool is_alive(pid_t pid) {
  return kill(pid, 0) == 0;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() { mkdtemp(path_.data()); }

  ~TemporaryDirectory() {
    std::ignore = std::system(("rm -rf " + path_).c_str());
  }  // tidy: allow banned, test

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/shepherd_dir.XXXXXX";
};

TEST(Shepherd, GivesEachTasksOutputAndExitCode) {
  TestNode node;
  ASSERT_TRUE(node.run(shell("echo out $SCORE_RANK; echo err $SCORE_RANK >&2; exit $SCORE_RANK"),
                       {.index = 1, .tasks_on_node = {2, 3}}));
  EXPECT_GT(node.ready->group(), 1);
  EXPECT_EQ(node.started->pids_size(), 3);
  ASSERT_EQ(node.done->exits_size(), 3);
  EXPECT_EQ(node.ended.size(), 3U);
  for (std::uint32_t rank = 2; rank < 5; ++rank) {
    EXPECT_EQ(node.out[rank], "out " + std::to_string(rank) + "\n");
    EXPECT_EQ(node.err[rank], "err " + std::to_string(rank) + "\n");
    EXPECT_EQ(node.exit_of(rank)->code(), static_cast<int>(rank));
    EXPECT_EQ(node.exit_of(rank)->signal(), 0);
  }
  node.send(wire::ShepherdEnd());
  EXPECT_TRUE(node.wait_ended());
}

TEST(Shepherd, TellsTasksTheirPlace) {
  auto spec = spec_of({"env"});
  spec.add_env("PMI_PORT=host:1");
  spec.add_env("SCORE_RANK=99");
  spec.set_cpus_per_task(2);
  TestNode node;
  ASSERT_TRUE(node.run(spec, {.index = 1, .tasks_on_node = {2, 1}}));
  const auto& text = node.out[2];
  for (const auto* line :
       {"SCORE_JOBID=7\n", "SCORE_RANK=2\n", "SCORE_SIZE=3\n", "SCORE_NNODES=2\n",
        "SCORE_NODEID=1\n", "SCORE_LOCALID=0\n", "SCORE_NODENAME=node1\n", "PMI_FD=3\n",
        "PMI_RANK=2\n", "PMI_SIZE=3\n", "OMP_NUM_THREADS=2\n", "PWD=/tmp\n"}) {
    EXPECT_NE(text.find(line), text.npos) << line << text;
  }
  EXPECT_EQ(text.find("PMI_PORT"), text.npos);
  EXPECT_EQ(text.find("SLURM"), text.npos);
  EXPECT_EQ(text.find("=99"), text.npos);
}

TEST(Shepherd, TaskSeesNoOtherDescriptors) {
  TestNode node;
  ASSERT_TRUE(
      node.run(shell("ls -l /proc/$$/fd | sed -n 's/.* \\([0-9]*\\) ->.*/\\1/p' | tr '\\n' ' '"),
               {.index = 0, .tasks_on_node = {6}}));
  for (const auto& [rank, text] : node.out) EXPECT_EQ(text.substr(0, 8), "0 1 2 3 ") << text;
  auto spec = shell("ls /proc/self/fd | wc -l");
  spec.set_mpi(wire::LaunchSpec::NONE);
  TestNode plain;
  ASSERT_TRUE(plain.run(spec));
  EXPECT_EQ(plain.out[0], "4\n");  // 0, 1, 2 and the directory that ls reads
}

TEST(Shepherd, SignalsReachTheTasks) {
  TestNode node;
  node.prepare(shell("trap 'echo usr1; exit 4' USR1; echo up; while :; do sleep 0.01; done"),
               {.index = 0, .tasks_on_node = {2}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[0] == "up\n" && node.out[1] == "up\n"; }));
  node.signal(SIGUSR1);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[1], "up\nusr1\n");
  EXPECT_EQ(node.exit_of(1)->code(), 4);
}

TEST(Shepherd, KillIsTheExit) {
  TestNode node;
  node.prepare(spec_of({"sleep", "1000"}), {.index = 0, .tasks_on_node = {3}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.started.has_value(); }));
  node.signal(0);
  node.signal(4711);
  node.signal(SIGKILL);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(node.exit_of(rank)->signal(), SIGKILL);
}

// ---- refusals

std::pair<int, std::string> refusal_of(const wire::LaunchSpec& spec) {
  TestNode node(as_nobody());
  node.prepare(spec);
  if (!node.wait([&] { return node.ready || node.refused; }) || !node.refused) return {0, ""};
  EXPECT_TRUE(node.wait_ended());
  return {node.refused->exit_code(), node.refused->reason()};
}

TEST(Shepherd, RefusesWhatCannotRun) {
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
  if (getuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  TemporaryDirectory directory;  // 0700, root's
  auto spec = spec_of({"true"});
  spec.set_directory(directory.path());
  EXPECT_EQ(refusal_of(spec).first, 126);
  EXPECT_EQ(refusal_of(spec).second, "directory " + directory.path() + ": Permission denied");
  spec.set_directory("/tmp");
  spec.set_stdout_path(directory.path() + "/out");
  EXPECT_EQ(refusal_of(spec).first, 125);
  spec.set_stdout_path("");
  spec.set_stdin_path("/no/such/input");
  EXPECT_EQ(refusal_of(spec).second, "open /no/such/input: No such file or directory");
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

TEST(Shepherd, RefusesAVariableThatExecCannotCarry) {
  auto spec = spec_of({"true"});
  spec.add_env("HUGE=" + std::string(200'000, 'x'));
  const auto [code, reason] = refusal_of(spec);
  EXPECT_EQ(code, 126);
  EXPECT_EQ(reason, "environment variable HUGE of 200005 bytes: this system allows 131071");
}

TEST(Shepherd, TellsExecFailureOnTheTasksStderr) {
  TemporaryDirectory directory;
  const auto script = directory.path() + "/script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  chmod(script.c_str(), 0755);
  TestNode node;
  ASSERT_TRUE(node.run(spec_of({script})));
  EXPECT_EQ(node.exit_of(0)->code(), 127);
  EXPECT_EQ(node.err[0], "scored: node0: rank 0: exec " + script + ": No such file or directory\n");
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

// ---- streams

TEST(Shepherd, FloodWaitsForASlowReaderAndArrivesWhole) {
  constexpr std::uint64_t kBytes = 100'000'000;
  TestNode node;
  node.takes_output = false;
  node.keeps_output = false;
  node.prepare(shell("head -c " + std::to_string(kBytes) + " /dev/zero"));
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.output_bytes >= 256 * 1024; }));
  EXPECT_FALSE(
      node.wait([&] { return node.output_bytes > 256 * 1024; }, std::chrono::milliseconds(100)));
  EXPECT_LT(node.shepherd_rss_bytes(), kMostMemory);
  node.takes_output = true;
  node.take(node.output_bytes);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }, std::chrono::seconds(50)));
  EXPECT_EQ(node.output_bytes, kBytes);
  EXPECT_LT(node.shepherd_rss_bytes(), kMostMemory);
}

TEST(Shepherd, InputReachesEveryTask) {
  auto spec = spec_of({"cat"});
  spec.set_stdin_rank(-1);
  TestNode node;
  node.prepare(spec, {.index = 0, .tasks_on_node = {4}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  std::string sent;
  for (int i = 0; i < 16; ++i) {
    const std::string part(65536, static_cast<char>('a' + i));
    node.input(part, i == 15);
    sent += part;
    // Within the window: 256 KiB on the way.
    ASSERT_TRUE(node.wait([&] { return node.input_taken + 3 * 65536 >= sent.size(); }));
  }
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(node.out[rank] == sent) << rank;
  EXPECT_EQ(node.input_taken, sent.size());
}

TEST(Shepherd, OnlyTheChosenRankReadsInput) {
  auto spec = spec_of({"cat"});
  spec.set_stdin_rank(1);
  TestNode node;
  node.prepare(spec, {.index = 0, .tasks_on_node = {3}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.input("early ", false);
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.ended.size() == 2; }));  // the others read /dev/null
  node.input("late", true);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[1], "early late");
  EXPECT_EQ(node.out[0] + node.out[2], "");
}

TEST(Shepherd, InputOfADeafTaskIsTaken) {
  auto spec = shell("exec <&-; sleep 1");
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  for (int i = 0; i < 2; ++i) node.input(std::string(65536, 'x'), false);
  ASSERT_TRUE(node.wait([&] { return node.input_taken == 2 * 65536; }));
  EXPECT_FALSE(node.done.has_value());
}

TEST(Shepherd, InputBeyondTheWindowDropsTheConnectionOnly) {
  auto spec = spec_of({"sleep", "1000"});
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  for (int i = 0; i < 8; ++i) node.input(std::string(64 * 1024, 'x'), false);
  EXPECT_FALSE(node.wait([] { return false; }, std::chrono::seconds(2)));
  EXPECT_FALSE(node.is_connected());
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_EQ(node.report->phase(), 2U);
}

TEST(Shepherd, OutputGoesToFilesByPattern) {
  TemporaryDirectory directory;
  auto spec = shell("echo out $SCORE_RANK; echo err $SCORE_RANK >&2");
  spec.set_directory(directory.path());
  spec.set_stdout_path("%j.%2t.%N");
  spec.set_stderr_path("all%%");
  std::ofstream(directory.path() + "/all%") << "old\n";
  TestNode node;
  ASSERT_TRUE(node.run(spec, {.index = 0, .tasks_on_node = {2}}));
  EXPECT_EQ(read_text(directory.path() + "/7.00.node0"), "out 0\n");
  EXPECT_EQ(read_text(directory.path() + "/7.01.node0"), "out 1\n");
  const auto shared = read_text(directory.path() + "/all%");
  EXPECT_TRUE(shared == "err 0\nerr 1\n" || shared == "err 1\nerr 0\n") << shared;
  EXPECT_EQ(node.output_bytes, 0U);
}

TEST(Shepherd, TerminalOfRankZero) {
  auto spec = shell(
      "test -t 0 && test -t 1 && stty size; read x; echo got $x; stty size; "
      "echo $SCORE_RANK >/dev/tty; cat; exit 3");
  spec.set_pty(true);
  spec.set_terminal_rows(33);
  spec.set_terminal_columns(77);
  TestNode node;
  node.prepare(spec);
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[0].find("33 77\r\n") != std::string::npos; }));
  wire::TerminalSize size;
  size.set_rows(44);
  size.set_columns(88);
  node.send(size);
  node.input("hello\n", false);
  ASSERT_TRUE(node.wait([&] { return node.out[0].find("44 88\r\n0\r\n") != std::string::npos; }));
  node.input("", true);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_NE(node.out[0].find("got hello\r\n"), std::string::npos) << node.out[0];
  EXPECT_EQ(node.exit_of(0)->code(), 3);
}

// ---- the end

TEST(Shepherd, WhatDoubleForksIsKilledAndHoldsNothingUp) {
  TestNode node;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      node.run(shell("(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 100; done' &) ; "
                     "sleep 0.2; echo bye; exit 0")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  const auto daemon = static_cast<pid_t>(std::stol(node.out[0]));
  EXPECT_FALSE(is_alive(daemon));
  EXPECT_NE(node.out[0].find("bye"), std::string::npos);
}

TEST(Shepherd, RunsTwoHundredFiftySixTasks) {
  TestNode node;
  ASSERT_TRUE(node.run(shell("echo $SCORE_RANK"), {.index = 0, .tasks_on_node = {256}}));
  ASSERT_EQ(node.done->exits_size(), 256);
  for (std::uint32_t rank = 0; rank < 256; ++rank) {
    EXPECT_EQ(node.out[rank], std::to_string(rank) + "\n");
  }
}

TEST(Shepherd, KilledBeforeTheStart) {
  TestNode node;
  node.prepare(spec_of({"true"}), {.index = 0, .tasks_on_node = {2}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.signal(SIGKILL);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.exit_of(1)->signal(), SIGKILL);
  EXPECT_FALSE(node.started.has_value());
}

TEST(Shepherd, NeverWaitsForAFrozenSpawner) {
  TestNode node;
  node.prepare(shell("echo $SCORE_RANK"), {.index = 0, .tasks_on_node = {9}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  const auto group = static_cast<pid_t>(node.ready->group());
  kill(-group, SIGSTOP);
  node.start();
  node.send(wire::ShepherdResume());  // it answers meanwhile
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_FALSE(node.started.has_value());
  kill(-group, SIGCONT);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.done->exits_size(), 9);
}

TEST(Shepherd, KillReachesAFrozenSpawner) {
  TestNode node;
  node.prepare(spec_of({"true"}), {.index = 0, .tasks_on_node = {9}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  const auto group = static_cast<pid_t>(node.ready->group());
  kill(-group, SIGSTOP);
  node.start();
  node.signal(SIGKILL);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_FALSE(is_alive(group));
  EXPECT_EQ(node.done->exits_size(), 9);
}

TEST(Shepherd, SurvivesTheNodeDaemonAndTellsAllAgain) {
  TestNode node;
  node.takes_output = false;
  node.prepare(shell("echo before; sleep 0.2; echo after; exit 5"));
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[0] == "before\n"; }));
  node.disconnect();
  node.connect();
  node.takes_output = true;
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.repeated_bytes, 7U);
  EXPECT_EQ(node.out[0], "before\nafter\n");
  // And after the end, for a node daemon that missed it.
  node.done.reset();
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.report->phase(), 3U);
  EXPECT_EQ(node.report->attempt(), 7U * 256 + 1);
  EXPECT_EQ(node.exit_of(0)->code(), 5);
}

TEST(Shepherd, EndsWhenNobodyCanEverReachIt) {
  TestNode node;
  node.prepare(shell("echo $$; sleep 1000"));
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return !node.out[0].empty(); }));
  const auto task = static_cast<pid_t>(std::stol(node.out[0]));
  node.unlink_socket();
  node.disconnect();
  EXPECT_TRUE(node.wait_ended());
  EXPECT_FALSE(is_alive(task));
}

// ---- real programs

// With 8 ranks on one node and on four; skipped where MPICH is not installed.
class MpiProgram : public testing::TestWithParam<const char*> {
 protected:
  static std::string path() {
    const char* examples = std::getenv("SCORED_EXAMPLES");
    const auto path = std::string(examples != nullptr ? examples : ".") + "/" + GetParam();
    return access(path.c_str(), X_OK) == 0 ? path : "";
  }

  static void runs_on(const std::vector<std::uint32_t>& tasks_on_node, std::size_t fewest_fences) {
    if (path().empty()) GTEST_SKIP() << "the MPI examples are not built";
    TestCluster cluster(tasks_on_node);
    ASSERT_TRUE(cluster.run(spec_of({path(), "--iterations", "2"}))) << cluster.errors();
    EXPECT_NE(cluster.output().find(std::string(GetParam()) + ": 8 ranks"), std::string::npos)
        << cluster.output() << cluster.errors();
    EXPECT_NE(cluster.output().find(": correct\n"), std::string::npos) << cluster.output();
    EXPECT_GE(cluster.fences_done, fewest_fences);
    for (const auto& node : cluster.nodes) {
      for (const auto& exit : node->ended) EXPECT_EQ(exit.code() + exit.signal(), 0);
    }
  }
};

TEST_P(MpiProgram, RunsOnOneNode) {
  runs_on({8}, 0);
}

TEST_P(MpiProgram, RunsOnFourNodes) {
  runs_on({2, 2, 2, 2}, 1);
}

INSTANTIATE_TEST_SUITE_P(Examples, MpiProgram, testing::Values("ring", "allreduce", "pi"));

// ---- hostile peers

bool is_answered_as(uid_t user, TestNode& node) {
  if (setresuid(user, user, user) != 0) return true;
  try {
    node.connect();
    node.send(wire::ShepherdResume());
    return node.wait([&] { return node.report.has_value(); }, std::chrono::seconds(5));
  } catch (const std::exception&) {
    return true;  // it could not even try
  }
}

TEST(Shepherd, RefusesStrangers) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  TestNode node({.user = 0, .connect = false, .program = ""});
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

TEST(Shepherd, RandomBytesCostOnlyTheConnection) {
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
  // Truncated messages inside good frames.
  node.send_bytes(proto::encode_frame_bytes(proto::FrameType::SignalTasks, "\xff"));
  node.send_bytes(proto::encode_frame_bytes(proto::FrameType::FenceDone, "\x1a\x7f"));
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_EQ(node.report->phase(), 0U);
  EXPECT_TRUE(node.run(shell("echo fine")));
  EXPECT_EQ(node.out[0], "fine\n");
}

TEST(Shepherd, RefusesPlansWithoutSense) {
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

TEST(Shepherd, GarbageOnPmiEndsThatConnectionAndSaysSo) {
  TestNode node;
  ASSERT_TRUE(
      node.run(shell("if [ $SCORE_RANK = 1 ]; then echo nonsense >&3; cat <&3; else sleep 0.2; fi"),
               {.index = 0, .tasks_on_node = {2}}));
  EXPECT_NE(node.err[1].find("scored: node0: rank 1: PMI connection closed: word nonsense"),
            std::string::npos)
      << node.err[1];
  EXPECT_EQ(node.exit_of(0)->code(), 0);
}

TEST(Shepherd, AbortIsToldBeforeTheTasksEnd) {
  TestNode node;
  ASSERT_TRUE(node.run(shell("echo 'cmd=abort exitcode=9 message=too hot' >&3; exit 9")));
  ASSERT_TRUE(node.abort.has_value());
  EXPECT_EQ(node.abort->code(), 9);
  EXPECT_EQ(node.abort->message(), "too hot");
}

TEST(Shepherd, FenceIsRepeatedAfterAResume) {
  TestNode node;
  node.prepare(shell("echo 'cmd=init pmi_version=1 pmi_subversion=1' >&3; read a <&3; "
                     "echo 'cmd=put kvsname=kvs_1793 key=k value=v' >&3; read a <&3; "
                     "echo 'cmd=barrier_in' >&3; read a <&3; echo $a; "
                     "echo 'cmd=get kvsname=kvs_1793 key=other' >&3; read a <&3; echo $a; "
                     "echo cmd=finalize >&3; read a <&3"),
               {.index = 0, .tasks_on_node = {1, 1}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.fences.size() == 1; }));
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.fences.size() == 2; }));
  EXPECT_EQ(node.fences[0].SerializeAsString(), node.fences[1].SerializeAsString());
  wire::FenceDone done;
  done.set_sequence(1);
  using namespace std::string_literals;
  done.set_key_values("\1\0\1\0kv\5\0\1\0other!"s);
  node.send(done);
  node.send(done);  // a repeat changes nothing
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.out[0], "cmd=barrier_out rc=0\ncmd=get_result rc=0 msg=success value=!\n");
}

}  // namespace
}  // namespace score::shepherd::test
