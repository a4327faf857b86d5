// These tests run real PMIx clients under real shepherds of several nodes, without daemons.
#include "base/text.hpp"
#include "tests/support/job/test_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::pmix {
namespace {

using shepherd::test::shell;
using shepherd::test::spec_of;
using shepherd::test::TestCluster;
using shepherd::test::TestNode;

wire::LaunchSpec probe(const std::string& mode) {
  auto spec = spec_of({std::getenv("PMIX_PROBE"), mode});
  spec.set_nodelist("node[0-7]");
  return spec;
}

const wire::ShepherdAbort* abort_of(const TestCluster& cluster) {
  for (const auto& node : cluster.nodes) {
    if (node->abort) return &*node->abort;
  }
  return nullptr;
}

TEST(PmixFlow, RanksOfSeveralNodesExchangeValues) {
  TestCluster cluster({2, 3, 1});
  ASSERT_TRUE(cluster.run(probe("exchange"))) << cluster.errors();
  std::string expected;
  for (int rank = 0; rank < 6; ++rank) {
    for (int round = 0; round < 2; ++round) {
      expected += "rank " + std::to_string(rank) + " of 6 has all\n";
    }
  }
  EXPECT_EQ(cluster.output(), expected) << cluster.errors();
  EXPECT_EQ(cluster.errors(), "");
  EXPECT_GE(cluster.fences_done, 2U);
}

TEST(PmixFlow, SingleNodeFencesLocally) {
  TestCluster cluster({3});
  ASSERT_TRUE(cluster.run(probe("exchange"))) << cluster.errors();
  EXPECT_EQ(cluster.errors(), "");
}

TEST(PmixFlow, ResumeDuringPreparationIsAnswered) {
  auto spec = shell("true");
  spec.set_mpi(wire::LaunchSpec::PMIX);
  TestNode node;
  node.prepare(spec);
  node.send(wire::ShepherdResume());  // the PMIx server is still starting
  ASSERT_TRUE(node.wait([&] { return node.report && node.ready; })) << node.all_errors();
  EXPECT_EQ(node.report->pids_size(), 0);
  EXPECT_EQ(node.report->exits_size(), 0);
}

TEST(PmixFlow, TasksKnowNodesOfAllRanks) {
  TestCluster cluster({2, 1});
  ASSERT_TRUE(cluster.run(probe("info"))) << cluster.errors();
  EXPECT_EQ(cluster.output(),
            "rank 0 of 3 peers 0,1 nodes node0 node0 node1\n"
            "rank 1 of 3 peers 0,1 nodes node0 node0 node1\n"
            "rank 2 of 3 peers 2 nodes node0 node0 node1\n")
      << cluster.errors();
}

std::string lines(std::uint32_t ranks, const std::string& text) {
  std::string all;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) all += fmt::format(fmt::runtime(text), rank);
  return all;
}

TEST(PmixFlow, OpenMpiYieldsWhenTasksOutnumberProcessors) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  const auto processors = static_cast<std::uint32_t>(CPU_COUNT(&usable));
  auto spec = shell("echo yields ${OMPI_MCA_mpi_yield_when_idle-not}");
  spec.set_mpi(wire::LaunchSpec::PMIX);
  TestCluster cluster({processors + 1, 1});
  ASSERT_TRUE(cluster.run(spec)) << cluster.errors();
  std::string expected;
  for (std::uint32_t task = 0; task <= processors; ++task) expected += "yields 1\n";
  EXPECT_EQ(cluster.output(), expected + "yields not\n") << cluster.errors();
}

TEST(PmixFlow, RankDataIsFetchedWithoutFence) {
  TestCluster cluster({2, 1, 1});
  ASSERT_TRUE(cluster.run(probe("modex"))) << cluster.errors();
  EXPECT_EQ(cluster.output(), lines(4, "rank {} of 4 has all\n")) << cluster.errors();
}

TEST(PmixFlow, SomeRanksFenceWithoutTheOthers) {
  TestCluster cluster({2, 2, 1});
  ASSERT_TRUE(cluster.run(probe("subset"))) << cluster.errors();
  EXPECT_EQ(cluster.output(), lines(5, "rank {} of 5 fenced\n")) << cluster.errors();
}

TEST(PmixFlow, GroupsHaveSameNumberOnAllNodes) {
  if (SCORE_PMIX_VERSION[0] > '4') GTEST_SKIP() << "groups of libpmix 5 are not supported";
  TestCluster cluster({2, 2, 1});
  ASSERT_TRUE(cluster.run(probe("groups"))) << cluster.errors();
  EXPECT_EQ(cluster.output(), lines(5, "rank {} of 5 grouped\n")) << cluster.errors();
}

TEST(PmixFlow, NamesArePublishedLookedUpAndWithdrawn) {
  TestCluster cluster({1, 2, 1});
  ASSERT_TRUE(cluster.run(probe("names"))) << cluster.errors();
  std::string expected;
  for (int rank = 0; rank < 4; ++rank) {
    expected += "published twice\n" + fmt::format("rank {} of 4 knows the next\n", rank);
  }
  EXPECT_EQ(cluster.output(), expected) << cluster.errors();
  EXPECT_EQ(cluster.errors(), "");
}

TEST(PmixFlow, RefusedSpawnIsReportedOncePerNode) {
  TestCluster cluster({2, 1});
  ASSERT_TRUE(cluster.run(probe("spawn"))) << cluster.errors();
  EXPECT_EQ(cluster.output(), lines(3, "rank {} of 3 goes on\n")) << cluster.errors();
  const auto errors = cluster.errors();
  const std::string_view note = "start the job with scrun --spawn N\n";
  const auto first = errors.find(note);
  ASSERT_NE(first, std::string::npos) << errors;
  const auto second = errors.find(note, first + 1);
  ASSERT_NE(second, std::string::npos) << errors;
  EXPECT_EQ(errors.find(note, second + 1), std::string::npos) << errors;
}

TEST(PmixFlow, AbortReportsRankAndReason) {
  TestCluster cluster({1, 2});
  ASSERT_TRUE(cluster.run(probe("abort"))) << cluster.errors();
  const auto* abort = abort_of(cluster);
  ASSERT_NE(abort, nullptr);
  EXPECT_EQ(abort->rank(), 0U);
  EXPECT_EQ(abort->code(), 9);
  EXPECT_EQ(abort->message(), "no more");
}

TEST(PmixFlow, TaskEndingWithoutFinalizeEndsJob) {
  TestCluster cluster({1, 2});
  ASSERT_TRUE(cluster.run(probe("leave"))) << cluster.errors();
  const auto* abort = abort_of(cluster);
  ASSERT_NE(abort, nullptr);
  EXPECT_EQ(abort->rank(), 0U);
  EXPECT_EQ(abort->message(), "ended without MPI_Finalize");
}

// Copies the shepherd to a folder that contains no scored-pmix.
struct NodeWithoutPmix {
  NodeWithoutPmix() { std::filesystem::copy_file(std::getenv("SCORED_SHEPHERD"), program); }

  ~NodeWithoutPmix() { std::filesystem::remove_all(directory); }

  const std::filesystem::path directory = [] {
    std::string name = testing::TempDir() + "no_pmix.XXXXXX";
    return std::filesystem::path(mkdtemp(name.data()));
  }();
  const std::filesystem::path program = directory / "scored-shepherd";
};

// The script starts an MPI program only where PMIx is offered, and runs `otherwise` elsewhere.
void expect_end_for_lack(const std::string& otherwise) {
  const NodeWithoutPmix bare;
  TestCluster cluster({1, 1, 1});
  for (const int lacking : {1, 2}) {
    cluster.nodes[lacking] = std::make_unique<TestNode>(TestNode::Options{.program = bare.program});
  }
  const std::string begin = "test $SCORE_RANK = 0 || " + otherwise + "; exec ";
  ASSERT_TRUE(cluster.run(shell(begin + std::getenv("PMIX_PROBE") + " exchange")));
  ASSERT_TRUE(cluster.nodes[0]->abort);
  EXPECT_EQ(cluster.nodes[0]->abort->rank(), 0U);
  EXPECT_EQ(cluster.nodes[0]->abort->code(), 125);
  EXPECT_EQ(cluster.nodes[0]->abort->message(),
            "this task uses PMIx, but node1 and 1 more node have no PMIx: scored-pmix is not "
            "installed there: install the package scored-node, or build with libpmix-dev");
  EXPECT_FALSE(cluster.nodes[1]->abort || cluster.nodes[2]->abort);
}

TEST(PmixFlow, MissingPmixOnOneNodeAbortsJob) {
  expect_end_for_lack("exec sleep 1000");
}

TEST(PmixFlow, FinishedNodeWithoutPmixIsReported) {
  expect_end_for_lack("exit 0");
}

TEST(PmixFlow, ScriptRunsIfNoNodeHasPmix) {
  const NodeWithoutPmix bare;
  TestCluster cluster({1, 2, 1, 1});
  for (auto& node : cluster.nodes) {
    node = std::make_unique<TestNode>(TestNode::Options{.program = bare.program});
  }
  const std::string fence_is_over = bare.directory / "fence_is_over";
  cluster.fence_ended = [&] { std::ofstream{fence_is_over}; };
  const std::string wait = "until test -e " + fence_is_over + "; do sleep 0.05; done; ";
  ASSERT_TRUE(cluster.run(shell(wait + "test $SCORE_RANK != 0 || exit 3; exec sleep 1000")));
  EXPECT_EQ(cluster.fences_done, 1U);
  EXPECT_EQ(abort_of(cluster), nullptr);
  EXPECT_EQ(cluster.nodes[0]->exit_of(0)->code(), 3);
}

// The tasks would run as singletons and print two wrong results.
TEST(PmixFlow, TaskUsingMissingPmixEndsJob) {
  const NodeWithoutPmix bare;
  TestCluster cluster({2});
  cluster.nodes[0] = std::make_unique<TestNode>(TestNode::Options{.program = bare.program});
  ASSERT_TRUE(cluster.run(shell(std::string(std::getenv("PMIX_PROBE")) + " exchange; exit 3")));
  ASSERT_TRUE(cluster.nodes[0]->abort);
  EXPECT_EQ(cluster.nodes[0]->abort->message(),
            "no PMIx on this node: scored-pmix is not installed: install the package scored-node, "
            "or build with libpmix-dev");
  EXPECT_EQ(cluster.output() + cluster.errors(), "");
}

TEST(PmixFlow, MissingPmixIsReportedUntilFenceCompletes) {
  const NodeWithoutPmix bare;
  TestNode node(TestNode::Options{.program = bare.program});
  const auto resume = [&node] {
    node.disconnect();
    node.connect();
    node.send(wire::ShepherdResume());
    node.report.reset();
    return node.wait([&node] { return node.report.has_value(); });
  };
  node.prepare(shell("sleep 1000"), {.index = 0, .tasks_on_node = {1, 1}});
  ASSERT_TRUE(node.wait([&] { return node.ready && node.fences.size() == 1; }));
  ASSERT_TRUE(resume());
  ASSERT_TRUE(node.wait([&] { return node.fences.size() == 2; }));
  wire::FenceDone done;
  done.set_sequence(1);
  done.set_pmix(true);
  done.set_key_values(node.fences[0].key_values() + node.fences[1].key_values());
  node.send(done);
  ASSERT_TRUE(resume());
  node.signal(SIGKILL);
  ASSERT_TRUE(node.wait([&] { return node.done.has_value(); }));
  EXPECT_EQ(node.fences.size(), 2U);
  EXPECT_FALSE(node.abort);
}

TEST(PmixFlow, ScriptWithoutPmixUseNeedsNone) {
  const NodeWithoutPmix bare;
  TestCluster cluster({1, 1});
  cluster.nodes[1] = std::make_unique<TestNode>(TestNode::Options{.program = bare.program});
  ASSERT_TRUE(cluster.run(shell("echo hello")));
  EXPECT_EQ(cluster.output(), "hello\nhello\n") << cluster.errors();
  EXPECT_EQ(abort_of(cluster), nullptr);
}

TEST(PmixFlow, GarbageOnServerPortIsHarmless) {
  TestCluster cluster({1, 1});
  ASSERT_TRUE(cluster.run(probe("garbage"))) << cluster.errors();
  EXPECT_EQ(cluster.output().substr(0, 22), "rank 0 of 2 has all\nra") << cluster.errors();
  EXPECT_EQ(abort_of(cluster), nullptr);
}

// A shepherd that has reported the end may be killed at any time, for example when the node stops.
TEST(PmixFlow, ServerFilesAreRemovedBeforeEndIsReported) {
  TestNode node;
  ASSERT_TRUE(node.run(probe("directory")));
  const std::filesystem::path directory = node.out[0];
  EXPECT_TRUE(directory.filename().string().starts_with("scored-pmix.")) << directory;
  EXPECT_FALSE(std::filesystem::exists(directory));
}

// Ranks need not examine the host's hardware themselves.
TEST(PmixFlow, HostTopologyIsShared) {
  TestNode node;
  ASSERT_TRUE(node.run(probe("topology")));
  const std::filesystem::path file = node.out[0];
  EXPECT_TRUE(file.parent_path().filename().string().starts_with("scored-pmix.")) << file;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(PmixFlow, TopologyHasNoDevicesWithPm) {
  TestNode own;
  ASSERT_TRUE(own.run(probe("devices")));
  if (own.out[0] == "0 devices, cores") GTEST_SKIP() << "this host has no PCI devices";
  EXPECT_TRUE(own.out[0].ends_with(" devices, cores")) << own.out[0];
  TestNode pm;
  auto spec = probe("devices");
  spec.set_net(wire::LaunchSpec::PM);
  ASSERT_TRUE(pm.run(spec));
  EXPECT_EQ(pm.out[0], "0 devices, cores");
}

// Connects as another user. Returns true if the connection is then closed.
bool is_stranger_refused(std::uint16_t port) {
  const pid_t stranger = fork();
  if (stranger == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    const base::UniqueFd made(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      _exit(3);
    }
    char byte = 0;
    _exit(recv(made.get(), &byte, 1, 0) <= 0 ? 0 : 4);
  }
  int status = -1;
  waitpid(stranger, &status, 0);
  return status == 0;
}

std::vector<std::string> names_of_children(pid_t pid) {
  std::vector<std::string> names;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
  for (pid_t child = 0; children >> child;) {
    std::ifstream file(fmt::format("/proc/{}/comm", child));
    std::getline(file, names.emplace_back());
  }
  return names;
}

TEST(PmixFlow, OnlyTasksStartTheServerAndAreServed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const std::string program = std::getenv("PMIX_PROBE");
  TestNode node;
  node.prepare(
      shell("echo $PMIX_SERVER_URI4; read line; " + program + " exchange; echo served; read line"));
  ASSERT_TRUE(node.wait([&] { return node.ready.has_value(); })) << node.all_errors();
  node.start();
  ASSERT_TRUE(node.wait([&] { return node.out[0].ends_with('\n'); }));
  const auto port = base::parse_number<std::uint16_t>(
      base::trim(std::string_view(node.out[0]).substr(node.out[0].rfind(':') + 1)));
  ASSERT_TRUE(port) << node.out[0];
  const auto runs = [&] {
    return std::ranges::count(names_of_children(node.shepherd_pid()), "scored-pmix") > 0;
  };
  EXPECT_TRUE(is_stranger_refused(*port));
  EXPECT_FALSE(runs()) << "a stranger has started it";
  node.input("\n", false);
  ASSERT_TRUE(node.wait([&] { return node.out[0].ends_with("served\n"); })) << node.all_errors();
  EXPECT_NE(node.out[0].find("rank 0 of 1 has all"), std::string::npos) << node.out[0];
  EXPECT_TRUE(runs());
  EXPECT_TRUE(is_stranger_refused(*port)) << "a stranger is served";
  node.input("", true);
  EXPECT_TRUE(node.wait([&] { return node.done.has_value(); }));
}

TEST(PmixFlow, OtherProgramsGetNoServer) {
  TestNode node;
  ASSERT_TRUE(node.run(shepherd::test::spec_of({"printenv"})));
  EXPECT_EQ(node.out[0].find("PMIX_"), std::string::npos);
  EXPECT_NE(node.out[0].find("PMI_FD="), std::string::npos);
}

TEST(PmixFlow, ScriptsGetAddressOfServerStartedOnDemand) {
  TestNode node;
  ASSERT_TRUE(node.run(shepherd::test::shell("env")));
  EXPECT_NE(node.out[0].find("PMIX_SERVER_URI4="), std::string::npos);
  EXPECT_NE(node.out[0].find("PMI_FD="), std::string::npos);
}

}  // namespace
}  // namespace score::pmix
