// These tests start tasks from programs that use PMI-1 directly: a shell is parent and child.
#include "tests/support/job/test_node.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <signal.h>

namespace score::shepherd::test {
namespace {

constexpr const char* kInit =
    "echo cmd=init pmi_version=1 pmi_subversion=1 >&3; read -r a <&3; "
    "spawn() { printf 'mcmd=spawn\\nnprocs=%s\\nexecname=%s\\ntotspawns=1\\nspawnssofar=1\\n"
    "arg1=-c\\narg2=%s\\nargcnt=2\\nendcmd\\n' \"$1\" \"$2\" \"$3\" >&3; read -r a <&3; "
    "echo \"$a\"; }; ";
constexpr const char* kEnd = " echo cmd=finalize >&3; read -r a <&3";
constexpr const char* kChild = "spawn 2 sh 'echo child $PMI_RANK of $PMI_SIZE: $SCORE_RANK';";

wire::LaunchSpec parent(const std::string& script, std::uint32_t room) {
  auto spec = shell(kInit + script + kEnd);
  spec.set_mpi(wire::LaunchSpec::PMI1);
  spec.set_spawn(room);
  return spec;
}

TEST(ShepherdSpawn, StartsTasksInTheRoom) {
  TestNode node;
  ASSERT_TRUE(node.run(parent(kChild, 2), {.index = 0, .tasks_on_node = {3}})) << node.all_errors();
  EXPECT_EQ(node.out[0], "cmd=spawn_result rc=0\n");
  EXPECT_EQ(node.out[1], "child 0 of 2: 1\n");
  EXPECT_EQ(node.out[2], "child 1 of 2: 2\n");
  EXPECT_EQ(node.started->pids_size(), 3) << "the node daemon knows the new tasks";
  EXPECT_EQ(node.done->exits_size(), 3);
}

TEST(ShepherdSpawn, UnusedRoomEndsWithTasks) {
  TestNode node;
  ASSERT_TRUE(node.run(parent("true;", 3), {.index = 0, .tasks_on_node = {4}}));
  EXPECT_EQ(node.started->pids_size(), 1);
  ASSERT_EQ(node.done->exits_size(), 4);
  for (const auto& exit : node.done->exits()) EXPECT_EQ(exit.code() + exit.signal(), 0);
}

TEST(ShepherdSpawn, FailedSpawnIsReportedOnlyToParent) {
  TestNode node;
  std::string script = "spawn 1 /no/such/program x; spawn 9 sh x; ";
  script += kChild;
  ASSERT_TRUE(node.run(parent(script, 2), {.index = 0, .tasks_on_node = {3}}));
  EXPECT_EQ(node.out[0],
            "cmd=spawn_result rc=-1 msg=spawn_failed\n"
            "cmd=spawn_result rc=-1 msg=spawn_failed\ncmd=spawn_result rc=0\n");
  EXPECT_NE(node.err[0].find("/no/such/program: not found"), std::string::npos) << node.err[0];
  EXPECT_NE(node.err[0].find("--spawn 9"), std::string::npos) << node.err[0];
  EXPECT_FALSE(node.abort);
}

TEST(ShepherdSpawn, NodesWithoutInitialTasksTakePart) {
  TestCluster cluster({1, 1, 1});
  ASSERT_TRUE(cluster.run(parent(kChild, 2))) << cluster.errors();
  EXPECT_EQ(cluster.nodes[0]->out[0], "cmd=spawn_result rc=0\n");
  EXPECT_EQ(cluster.nodes[1]->out[1], "child 0 of 2: 1\n");
  EXPECT_EQ(cluster.nodes[2]->out[2], "child 1 of 2: 2\n");
}

// The first node has already reported its end at that point.
TEST(ShepherdSpawn, NodeThatMissedEndAsksAgain) {
  TestCluster cluster({1, 1, 1});
  int lost = 0;
  cluster.loses = [&lost](const wire::JobRelay& message) {
    return message.spawn().kind() == wire::SpawnPeer::CLOSE && ++lost <= 2;
  };
  ASSERT_TRUE(cluster.run(parent(kChild, 2))) << cluster.errors();
  EXPECT_GT(lost, 2);
}

TEST(ShepherdSpawn, RefusalOfOneNodePreventsSpawn) {
  TestCluster cluster({1, 1, 1});
  ASSERT_TRUE(cluster.run(parent("spawn 2 /no/such/program x;", 2)));
  EXPECT_EQ(cluster.nodes[0]->out[0], "cmd=spawn_result rc=-1 msg=spawn_failed\n");
  for (const auto& node : cluster.nodes) EXPECT_EQ(node->done->exits_size(), 1);
}

TEST(ShepherdSpawn, SpawnedTasksGetSignalsAndReportFailure) {
  TestNode node;
  node.prepare(
      parent("spawn 1 sh 'trap \"exit 7\" TERM; echo up; while :; do sleep 0.1; done';", 1),
      {.index = 0, .tasks_on_node = {2}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[1] == "up\n" && !node.ended.empty(); }));
  node.signal(SIGTERM);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.exit_of(1)->code(), 7);
}

TEST(ShepherdSpawn, KillingTasksEndsUnusedRoom) {
  TestNode node;
  node.prepare(parent(std::string(kChild).append("sleep 600;"), 4),
               {.index = 0, .tasks_on_node = {5}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return !node.out[0].empty(); }));
  node.signal(SIGKILL);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.exit_of(0)->signal(), SIGKILL);
  EXPECT_EQ(node.exit_of(4)->code(), 0);
}

TEST(ShepherdSpawn, ResumeReportsSpawnedTasks) {
  TestNode node;
  node.prepare(parent("spawn 1 sh 'echo up; sleep 600';", 2), {.index = 0, .tasks_on_node = {3}});
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); }));
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[1] == "up\n"; }));
  node.disconnect();
  node.connect();
  node.send(wire::ShepherdResume());
  ASSERT_TRUE(node.wait([&] { return node.report.has_value(); }));
  EXPECT_EQ(node.report->pids_size(), 2);
  node.signal(SIGKILL);
  EXPECT_TRUE(node.wait([&] { return node.done.has_value(); }));
}

}  // namespace
}  // namespace score::shepherd::test
