// These tests cover the life of a shepherd: start, signals, end, loss of the node daemon; and real
// programs.
#include "proto/convert/convert.hpp"
#include "tests/support/job/test_node.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

namespace score::shepherd::test {
namespace {

bool is_alive(pid_t pid) {
  return kill(pid, 0) == 0;
}

TEST(Shepherd, ReportsOutputAndExitCodeOfEachTask) {
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

TEST(Shepherd, TasksGetVariablesOfTheirPlace) {
  auto spec = spec_of({"env"});
  spec.add_env("PMI_PORT=host:1");
  spec.add_env("SCORE_RANK=99");
  spec.set_cpus_per_task(2);
  TestNode node;
  ASSERT_TRUE(node.run(spec, {.index = 1, .tasks_on_node = {2, 1}}));
  const auto& text = node.out[2];
  for (const auto* line :
       {"SCORE_JOBID=7\n", "SCORE_RANK=2\n", "SCORE_SIZE=3\n", "SCORE_NNODES=2\n",
        "SCORE_NODEID=1\n", "SCORE_LOCALID=0\n", "SCORE_NODENAME=node1\n",
        "SCORE_RESTART_COUNT=0\n", "PMI_FD=3\n", "PMI_RANK=2\n", "PMI_SIZE=3\n",
        "OMP_NUM_THREADS=2\n", "OMP_WAIT_POLICY=passive\n", "PWD=/tmp\n"}) {
    EXPECT_NE(text.find(line), text.npos) << line << text;
  }
  EXPECT_EQ(text.find("PMI_PORT"), text.npos);
  EXPECT_EQ(text.find("SLURM"), text.npos);
  EXPECT_EQ(text.find("SCORE_RANK=99"), text.npos);
}

TEST(Shepherd, TaskSeesNoOtherDescriptors) {
  TestNode node;
  ASSERT_TRUE(
      node.run(shell("ls -l /proc/$$/fd | sed -n 's/.* \\([0-9]*\\) ->.*/\\1/p' | tr '\\n' ' '"),
               {.index = 0, .tasks_on_node = {6}}));
  for (const auto& [rank, text] : node.out) EXPECT_EQ(text.substr(0, 10), "0 1 2 3 4 ") << text;
  auto spec = shell("ls /proc/self/fd | wc -l");
  spec.set_mpi(wire::LaunchSpec::NONE);
  TestNode plain;
  ASSERT_TRUE(plain.run(spec));
  EXPECT_EQ(plain.out[0], "5\n");  // 0, 1, 2, the network's and the directory that ls reads
  spec.set_scout(true);
  TestNode command;
  ASSERT_TRUE(command.run(spec));
  EXPECT_EQ(command.out[0], "4\n");
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

TEST(Shepherd, KilledTasksReportSignal) {
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

// ---- the end

TEST(Shepherd, DoubleForkedProcessIsKilledWithoutDelay) {
  TestNode node;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      node.run(shell("(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 100; done' &) ; "
                     "sleep 0.2; echo bye; exit 0")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  const auto daemon = static_cast<pid_t>(std::stol(node.out[0]));
  EXPECT_FALSE(is_alive(daemon));
  EXPECT_NE(node.out[0].find("bye"), std::string::npos);
}

// The file has a name as UCX chooses it. A task that ends with 0 was not killed, so no search is
// necessary.
TEST(Shepherd, SearchesAbandonedMemoryOnlyAfterFailure) {
  const auto file = "/dev/shm/ucx_shm_posix_test_" + std::to_string(getpid());
  const auto make_and_exit = [&](int code) {
    TestNode node;
    ASSERT_TRUE(node.run(shell("echo x > " + file + "; exit " + std::to_string(code))));
  };
  make_and_exit(0);
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
  make_and_exit(3);
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  unlink(file.c_str());
}

TEST(Shepherd, RunsTwoHundredFiftySixTasks) {
  TestNode node;
  ASSERT_TRUE(node.run(shell("echo $SCORE_RANK"), {.index = 0, .tasks_on_node = {256}}));
  ASSERT_EQ(node.done->exits_size(), 256);
  for (std::uint32_t rank = 0; rank < 256; ++rank) {
    EXPECT_EQ(node.out[rank], std::to_string(rank) + "\n");
  }
}

TEST(Shepherd, KillBeforeStartEndsTasks) {
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
  node.send(wire::ShepherdResume());  // it still answers in the meantime
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_TRUE(proto::from_wire(*node.report)) << "a node daemon must be able to adopt it";
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

TEST(Shepherd, SurvivesNodeDaemonAndReportsAllAgain) {
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
  // The end is reported again to a node daemon that missed it.
  node.done.reset();
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.report->phase(), 3U);
  EXPECT_EQ(node.report->attempt(), 7U * 256 + 1);
  EXPECT_EQ(node.exit_of(0)->code(), 5);
}

// The node daemon forgets a shepherd that reports the end, and its output with it.
TEST(Shepherd, EndsAfterOutputIsTakenOrOneSecond) {
  TestNode taking;
  taking.takes_output = false;
  taking.prepare(shell("echo x"));
  ASSERT_TRUE(taking.wait([&] { return taking.ready.has_value(); }));
  taking.start();
  ASSERT_TRUE(taking.wait([&] { return taking.output_bytes == 2; }));
  taking.take(2);
  EXPECT_TRUE(taking.wait([&] { return taking.done.has_value(); }));

  TestNode silent;
  silent.takes_output = false;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(silent.run(shell("echo x")));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
}

TEST(Shepherd, ResumedShepherdEndsWhenOutputIsTaken) {
  TestNode node;
  node.takes_output = false;
  ASSERT_TRUE(node.run(shell("echo x")));
  node.done.reset();
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.repeated_bytes == 2; }));
  EXPECT_EQ(node.report->phase(), 2U);
  EXPECT_FALSE(node.wait([&] { return node.done.has_value(); }, std::chrono::milliseconds(100)));
  node.take(2);
  EXPECT_TRUE(node.wait([&] { return node.done.has_value(); }));
}

// Otherwise a node daemon that adopts the shepherd would assign the exits of its tasks to other
// ranks.
TEST(Shepherd, ReportsItsRanksAfterResume) {
  TestNode node;
  node.prepare(shell("sleep 1000"), {.index = 0,
                                     .tasks_on_node = {2, 2},
                                     .distribution = base::Distribution::Cyclic,
                                     .restarts = 3});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_TRUE(proto::from_wire(*node.report)) << "a node daemon must be able to adopt it";
  EXPECT_EQ(node.report->distribution(), static_cast<std::uint32_t>(base::Distribution::Cyclic));
  EXPECT_EQ(node.report->restarts(), 3U);
}

TEST(Shepherd, EndsWhenUnreachableForDaemons) {
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

// These tests use 8 ranks on one node and on four. They are skipped if MPICH is not installed.
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

}  // namespace
}  // namespace score::shepherd::test
