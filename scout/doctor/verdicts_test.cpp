#include "scout/doctor/verdicts.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <sys/stat.h>

namespace score::scout {
namespace {

constexpr auto kUp = wire::NodeStatus::UP;
constexpr auto kSuspect = wire::NodeStatus::SUSPECT;
constexpr auto kDown = wire::NodeStatus::DOWN;
constexpr auto kKey = wire::FileFact::KEY;
constexpr auto kConfiguration = wire::FileFact::CONFIGURATION;
constexpr auto kCommandSocket = wire::FileFact::COMMAND_SOCKET;
constexpr auto kLauncherSocket = wire::FileFact::LAUNCHER_SOCKET;
constexpr std::uint32_t kUser = 900;

wire::FileFact file(wire::FileFact::Role role, std::uint32_t mode, std::uint32_t owner = kUser) {
  wire::FileFact fact;
  fact.set_role(role);
  fact.set_path(fmt::format("/etc/{}", static_cast<int>(role)));
  fact.set_mode(mode);
  fact.set_owner(owner);
  return fact;
}

void add_node(Evidence& evidence, const std::string& name) {
  auto& status = *evidence.nodes.add_nodes();
  status.set_name(name);
  status.set_state(kUp);
  status.set_release("1.2.0");
  status.set_last_heard_ns(1);
  status.mutable_switching()->set_method(wire::Switching::FREEZER);
  status.mutable_switching()->set_priority(wire::Switching::REAL_TIME);
  auto& facts = *evidence.facts->add_nodes();
  facts.set_name(name);
  facts.set_user(kUser);
  facts.set_cgroup("/sys/fs/cgroup/x");
  facts.add_controllers("cpu");
  facts.add_controllers("memory");
  facts.set_confinement(wire::HostFacts::CONFINED);
  facts.set_limits_memory(true);
  *facts.add_files() = file(kKey, S_IFREG | 0600U);
  *facts.add_files() = file(kConfiguration, S_IFREG | 0644U, 0);
  *facts.add_files() = file(kLauncherSocket, S_IFSOCK | 0600U);
  ProbedNode node;
  node.name = name;
  node.memlock = ~std::uint64_t{0};
  node.shm = std::uint64_t{1} << 30U;
  node.pm = "1.1";
  node.provider = "/usr/lib/libfabric";
  node.mpis = {{"/usr/lib/libmpi.so.40", ""}};
  evidence.probe->nodes.push_back(node);
}

Evidence healthy() {
  Evidence evidence;
  evidence.release = "1.2.0";
  evidence.info.set_version("1.2.0");
  evidence.facts.emplace();
  evidence.facts->mutable_head()->set_user(kUser);
  *evidence.facts->mutable_head()->add_files() = file(kCommandSocket, S_IFSOCK | 0666U);
  evidence.probe.emplace();
  for (const auto* name : {"n0", "n1", "n2"}) add_node(evidence, name);
  evidence.probe->pairs = {
      {"n0", "n1", 20'000, 1e9}, {"n0", "n2", 20'000, 1e9}, {"n1", "n2", 20'000, 1e9}};
  return evidence;
}

// Returns the only finding that is not ok.
Finding the_finding(const Evidence& evidence) {
  std::vector<Finding> bad;
  for (const auto& finding : judge(evidence)) {
    if (finding.level != Level::Ok) bad.push_back(finding);
  }
  if (bad.size() == 1) return bad[0];
  std::string all;
  for (const auto& finding : bad) all += finding.line() + "\n";
  ADD_FAILURE() << bad.size() << " findings:\n" << all;
  return {};
}

void expect(const Evidence& evidence, Level level, const char* check, const std::string& line) {
  const Finding finding = the_finding(evidence);
  EXPECT_EQ(finding.level, level) << finding.line();
  EXPECT_EQ(finding.check, check);
  EXPECT_EQ(finding.line().substr(0, line.size()), line);
  if (level >= Level::Warning) {
    EXPECT_NE(finding.remedy, "") << finding.line();
  }
}

TEST(Verdicts, HealthyClusterHasOneLinePerCheck) {
  const auto findings = judge(healthy());
  EXPECT_EQ(findings.size(), 14U);
  for (const auto& finding : findings) EXPECT_EQ(finding.level, Level::Ok) << finding.line();
}

TEST(Verdicts, ReleasesAreCompared) {
  EXPECT_EQ(release_distance("1.2.0", "1.2.7"), 0);
  EXPECT_EQ(release_distance("1.2.0", "1.3.0"), 1);
  EXPECT_EQ(release_distance("1.10.0", "1.8.0"), 2);
  EXPECT_EQ(release_distance("2.2.0", "1.2.0"), 2);
  EXPECT_EQ(release_distance("", "1.2.0"), 2);
  EXPECT_EQ(release_distance("1.x.0", "1.2.0"), 2);
}

TEST(Verdicts, OldReleasesAreNamed) {
  auto evidence = healthy();
  evidence.nodes.mutable_nodes(1)->set_release("1.1.0");
  expect(evidence, Level::Warning, "versions",
         "n1: release 1.1.0, and the head has 1.2.0: install");
  evidence.nodes.mutable_nodes(1)->set_release("0.9.0");
  expect(evidence, Level::Fault, "versions", "n1: release 0.9.0");
  evidence.nodes.mutable_nodes(1)->clear_release();
  expect(evidence, Level::Fault, "versions", "n1: release unknown (older)");
  evidence = healthy();
  evidence.release = "1.1.0";
  expect(evidence, Level::Warning, "versions", "these commands have release 1.1.0");
}

TEST(Verdicts, StateOfTheSecondHeadIsReported) {
  Evidence evidence = healthy();
  auto& first = *evidence.info.add_heads();
  first.set_name("a:7421");
  first.set_in_charge(true);
  first.set_state(wire::HeadState::LEADS);
  auto& second = *evidence.info.add_heads();
  second.set_name("b:7421");
  second.set_state(wire::HeadState::CURRENT);
  const auto all = judge(evidence);
  EXPECT_TRUE(std::ranges::any_of(all, [](const Finding& one) {
    return one.level == Level::Ok && one.line() == "a:7421 is in charge, b:7421 can take over";
  }));
  second.set_state(wire::HeadState::BEHIND);
  second.set_missing(7);
  expect(evidence, Level::Warning, "heads",
         "b:7421 cannot take over: not connected, 7 transactions behind: on its host, systemctl "
         "status scored-head and journalctl -u scored-head");
}

TEST(Verdicts, NodesThatTakeNoJobsAreNamed) {
  auto evidence = healthy();
  auto& node = *evidence.nodes.mutable_nodes(2);
  node.set_state(kDown);
  node.set_reason("no heartbeat for 30s");
  expect(evidence, Level::Fault, "nodes", "n2: down, no heartbeat for 30s: there, systemctl");
  node.set_last_heard_ns(0);
  expect(evidence, Level::Fault, "nodes", "n2: not connected since the head was started");
  node.set_key_refused(true);
  node.set_reason(
      "its key was revoked: `scadm key rotate n2` prints the line to run there, as root");
  expect(evidence, Level::Fault, "nodes", "n2: its key was revoked: `scadm key rotate n2` prints");
  node.set_key_refused(false);
  node.set_reason("");
  node.set_state(kSuspect);
  expect(evidence, Level::Warning, "nodes", "n2: no heartbeat");
  node.set_state(kUp);
  node.set_reason("no network: no interface eth1");
  expect(evidence, Level::Fault, "nodes", "n2: no network: no interface eth1");
  node.set_drained(true);
  node.set_reason("disk");
  expect(evidence, Level::Warning, "nodes", "n2: drained, disk: scadm resume");
}

// Returns a cluster with every fault whose remedy depends on who started the daemons.
Evidence sick() {
  Evidence evidence = healthy();
  auto& standby = *evidence.info.add_heads();
  standby.set_name("b:7421");
  standby.set_state(wire::HeadState::BEHIND);
  evidence.nodes.mutable_nodes(0)->set_state(kSuspect);
  evidence.nodes.mutable_nodes(1)->set_state(kDown);
  evidence.nodes.mutable_nodes(2)->mutable_switching()->set_priority(wire::Switching::NICE);
  evidence.facts->mutable_nodes(0)->clear_cgroup();
  auto& facts = *evidence.facts->mutable_nodes(1);
  facts.set_limits_memory(false);
  facts.set_confinement(wire::HostFacts::IMPOSSIBLE);
  facts.mutable_files(2)->set_problem("no answer");
  evidence.facts->add_silent_nodes("n2");
  evidence.probe->nodes[0].memlock = 1;
  evidence.probe->nodes[1].network_error = "No such device";
  evidence.probe->pairs[0].bytes_per_second = 1e6;
  return evidence;
}

// Returns the number of findings that name units of systemd or parameters of the kernel.
std::ptrdiff_t count_of_units(const Evidence& evidence) {
  const auto names_unit = [](const Finding& finding) {
    return std::ranges::any_of(
        std::array{"systemctl", "journalctl", ".service", "its unit", "boot with",
                   "cgroup_disable"},
        [&](const char* word) { return finding.remedy.find(word) != finding.remedy.npos; });
  };
  return std::ranges::count_if(judge(evidence), names_unit);
}

TEST(Verdicts, RemediesFitTheKindOfCluster) {
  Evidence evidence = sick();
  EXPECT_EQ(count_of_units(evidence), 11);
  evidence.info.set_virtual_cluster(true);
  EXPECT_EQ(count_of_units(evidence), 0);
  evidence.info.set_virtual_cluster(false);
  evidence.info.set_cluster("start");
  EXPECT_EQ(count_of_units(evidence), 0);
}

TEST(Verdicts, ClockThatIsNotMeasuredHasNoDistance) {
  auto evidence = healthy();
  evidence.nodes.mutable_nodes(1)->set_clock_error_ns(std::numeric_limits<std::int64_t>::max());
  expect(evidence, Level::Warning, "clocks", "n1: the distance of its clock is not measured yet");
  evidence.nodes.mutable_nodes(1)->set_clock_error_ns(20'000'000);
  expect(evidence, Level::Warning, "clocks", "n1: slices may begin 20 ms late");
}

TEST(Verdicts, SmallSharedMemoryIsReported) {
  auto evidence = healthy();
  evidence.probe->nodes[2].shm = std::uint64_t{64} << 20U;
  expect(evidence, Level::Warning, "shm", "n2: /dev/shm has 64M, and MPI libraries");
}

TEST(Verdicts, ProbeThatEndedEarlyIsReported) {
  auto evidence = healthy();
  evidence.why_probe_ended = "scrun: job 1 timed out";
  expect(evidence, Level::Warning, "pairs",
         "not all pairs are measured: scrun: job 1 timed out: if it stays so");
}

TEST(Verdicts, EqualFindingsOfNodesAreMerged) {
  auto evidence = healthy();
  for (auto& node : *evidence.facts->mutable_nodes()) node.set_limits_memory(false);
  expect(evidence, Level::Warning, "cgroups", "n[0-2]: the controller memory is not delegated");
}

TEST(Verdicts, ClockVerdictAllowsForMeasurementError) {
  auto evidence = healthy();
  auto& node = *evidence.facts->mutable_nodes(0);
  node.set_ahead_ns(1'500'000'000);
  node.set_ahead_error_ns(600'000'000);
  EXPECT_TRUE(
      std::ranges::all_of(judge(evidence), [](const auto& one) { return one.level == Level::Ok; }));
  node.set_ahead_error_ns(1000);
  expect(evidence, Level::Warning, "clocks", "n0: the clock is 1.5 s ahead of the head's: set it");
  node.set_ahead_ns(-90'000'000'000);
  expect(evidence, Level::Fault, "clocks", "n0: the clock is 90.0 s behind the head's");
}

TEST(Verdicts, MissingControllersAreNamed) {
  auto evidence = healthy();
  auto& node = *evidence.facts->mutable_nodes(0);
  node.set_why_no_fill("no controller cpu");
  expect(evidence, Level::Warning, "cgroups", "n0: jobs cannot fill: no controller cpu");
  node.clear_why_no_fill();
  node.set_confinement(wire::HostFacts::IMPOSSIBLE);
  expect(evidence, Level::Warning, "cgroups",
         "n0: the controller cpuset is not delegated: tasks can leave the cores of their job: "
         "remove it from cgroup_disable=");
  for (const auto other : {wire::HostFacts::NOT_WANTED, wire::HostFacts::UNKNOWN}) {
    node.set_confinement(other);
    EXPECT_EQ(judge(evidence).size(), judge(healthy()).size()) << "nothing is missing";
  }
  node.set_cgroup("/sys/fs/cgroup/system.slice/scored-node.service");
  expect(
      evidence, Level::Warning, "cgroups",
      "n0: jobs run in the unit of the node daemon, as in earlier versions, and its filters hold");
  node.clear_cgroup();
  expect(evidence, Level::Warning, "cgroups", "n0: no cgroup of version 2");
}

TEST(Verdicts, MissingPrivilegesAreNamed) {
  auto evidence = healthy();
  auto& switching = *evidence.nodes.mutable_nodes(0)->mutable_switching();
  switching.set_priority(wire::Switching::NICE);
  expect(evidence, Level::Warning, "priority", "n0: the switcher has no real-time priority (nice)");
  switching.clear_priority();
  EXPECT_EQ(judge(evidence).size(), judge(healthy()).size()) << "the node is older";
  evidence = healthy();
  evidence.probe->nodes[1].memlock = 1U << 20U;
  expect(evidence, Level::Warning, "memlock", "n1: jobs may lock 1");
}

TEST(Verdicts, ReadableProgramOfUsersIsNamed) {
  auto evidence = healthy();
  evidence.probe->nodes[1].readable_programs = {"/usr/libexec/scored/scored-shepherd"};
  expect(evidence, Level::Warning, "programs",
         "n1: users can read /usr/libexec/scored/scored-shepherd, so their tasks can trace it: "
         "chmod 711 /usr/libexec/scored/scored-shepherd");
}

TEST(Verdicts, FileModesAndOwnersAreChecked) {
  const auto judged = [](const wire::FileFact& fact) {
    Findings found;
    judge_file({"n0", kUser, kInstalledRemedies}, fact, found);
    return found.all().empty() ? "" : found.all()[0].line();
  };
  EXPECT_EQ(judged(file(kKey, S_IFREG | 0600U)), "");
  EXPECT_EQ(judged(file(kKey, S_IFREG | 0644U)),
            "n0: key /etc/2 has mode 0644: others can use it: chmod 600 /etc/2");
  EXPECT_EQ(judged(file(kKey, S_IFREG | 0600U, 0)),
            "n0: key /etc/2 belongs to uid 0, and the daemon runs as uid 900: chown 900 "
            "/etc/2");
  EXPECT_EQ(judged(file(kConfiguration, S_IFREG | 0644U, 0)), "");
  EXPECT_NE(judged(file(kConfiguration, S_IFREG | 0664U)).find("chmod 644"), std::string::npos);
  EXPECT_NE(judged(file(kConfiguration, S_IFREG | 0644U, 5)).find("chown"), std::string::npos);
  EXPECT_EQ(judged(file(kCommandSocket, S_IFSOCK | 0666U)), "");
  EXPECT_NE(judged(file(kCommandSocket, S_IFSOCK | 0600U)).find("chmod 666"), std::string::npos);
  EXPECT_NE(judged(file(kLauncherSocket, S_IFSOCK | 0666U)).find("chmod 600"), std::string::npos);
  auto gone = file(kLauncherSocket, 0);
  gone.set_problem("No such file or directory");
  EXPECT_NE(judged(gone).find("systemctl restart scored-launcher"), std::string::npos);
}

TEST(Verdicts, DifferentLibrariesAreNamed) {
  auto evidence = healthy();
  evidence.probe->nodes[2].mpis.clear();
  expect(evidence, Level::Warning, "mpi", "n2: lacks libmpi.so.40 (PM) of other nodes: install");
  evidence = healthy();
  evidence.probe->nodes[1].missing_parts = {"libpm-fi.so"};
  expect(evidence, Level::Warning, "parts",
         "n1: libpm-fi.so is missing, for MPI over PM (--net=pm): install the package libpm-fi1");
}

TEST(Verdicts, SilentDaemonsAndTlsHeartbeatsAreReported) {
  auto evidence = healthy();
  evidence.facts->add_silent_nodes("n1");
  expect(evidence, Level::Fault, "answers", "n1: the daemon does not answer");
  evidence = healthy();
  evidence.nodes.mutable_nodes(0)->set_control_problem("no answer over PM");
  expect(evidence, Level::Warning, "control", "n0: heartbeats go over TLS, no answer over PM");
}

TEST(Verdicts, SkippedChecksAreReported) {
  auto evidence = healthy();
  evidence.with_pairs = false;
  expect(evidence, Level::Skipped, "pairs", "not measured: --quick");
  evidence.facts.reset();
  evidence.probe.reset();
  evidence.why_no_facts = "the head is older";
  evidence.why_no_probe = "no node takes jobs";
  std::size_t skipped = 0;
  for (const auto& finding : judge(evidence)) skipped += finding.level == Level::Skipped ? 1 : 0;
  EXPECT_EQ(skipped, 10U);
}

}  // namespace
}  // namespace score::scout
