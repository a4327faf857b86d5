// These tests run the real node daemon, launcher and shepherd, and play the head.
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "pmlib/wire/frame.hpp"
#include "tests/support/node/test_head.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::node {
namespace {

using test::processes_with;
using test::state_of;
using test::TestHead;

// The parameter selects the freezer (true) or signals.
class NodeFlow : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !head.has_cgroups()) GTEST_SKIP() << "no cgroup2 that may be written";
    head.start_launcher();
    head.start_node();
    ASSERT_TRUE(head.wait_for_node()) << log();
  }

  std::string log() const {
    return read_file(head.dir / "node.log", 1U << 20U).value_or("") +
           read_file(head.dir / "launcher.log", 1U << 20U).value_or("");
  }

  // Returns a word that only this test's processes have in their command lines.
  std::string word() const { return head.dir.filename().string(); }

  // Returns a script that runs until it is killed.
  std::string loop() const { return "while :; do : " + word() + "; done"; }

  // Returns the CPU time of the process, which does not grow while it is stopped by a signal or by
  // the freezer.
  std::uint64_t ticks(pid_t pid) const {
    const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4'096).value_or("");
    const auto fields = split(std::string_view(text).substr(text.rfind(')') + 2), ' ');
    return fields.size() > 12 ? parse_number<std::uint64_t>(fields[11]).value_or(0) : 0;
  }

  // Returns the parent of the only process with this text, once the spawner has gone; 0: none.
  pid_t find_shepherd(const std::string& text) {
    pid_t parent = 0;
    const bool is_found = head.wait([&] {
      const auto tasks = processes_with(text);
      if (tasks.size() != 1) return false;
      const auto stat = read_file(fmt::format("/proc/{}/stat", tasks[0]), 4'096).value();
      parent = parse_number<pid_t>(split(stat, ' ')[3]).value();
      const auto line = read_file(fmt::format("/proc/{}/cmdline", parent), 4'096).value_or("");
      return line.ends_with(std::string_view("shepherd\0", 9)) && !line.ends_with("spawner");
    });
    return is_found ? parent : 0;
  }

  TestHead head{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(, NodeFlow, ::testing::Values(true, false),
                         [](const auto& made) { return made.param ? "Freezer" : "Signals"; });

TEST_P(NodeFlow, RunsATaskToItsEnd) {
  ASSERT_TRUE(head.run(256, "echo out; exit 3")) << log();
  const auto ended = head.expect<wire::TaskEnded>(256);
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->exit().code(), 3);
  const auto exited = head.expect<wire::Exited>(256);
  ASSERT_NE(exited, nullptr);
  EXPECT_EQ(exited->reason(), "");
  EXPECT_EQ(head.output(256), "out\n");
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
}

TEST_P(NodeFlow, ReportsHowItSwitches) {
  EXPECT_EQ(head.hellos[0].switching().method(),
            GetParam() ? wire::Switching::FREEZER : wire::Switching::SIGNALS);
  EXPECT_EQ(head.hellos[0].name(), "node1");
  EXPECT_EQ(head.hellos[0].cores(), 2U);
}

TEST_P(NodeFlow, RefusesProgramThatCannotBeExecuted) {
  wire::LaunchSpec spec;
  spec.add_programs()->add_argv("/no/such/program");
  spec.set_directory("/");
  spec.set_nodelist("node1");
  wire::PrepareTasks message;
  message.set_attempt(256);
  message.set_user(geteuid());
  message.add_tasks_on_node(1);
  message.add_cores(0);
  message.set_spec(spec.SerializeAsString());
  head.send(message);
  const auto refused = head.expect<wire::Refused>(256);
  ASSERT_NE(refused, nullptr) << log();
  EXPECT_EQ(refused->exit_code(), 127);
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
}

TEST_P(NodeFlow, KillsTasksThatIgnoreSignalsAndForkTwice) {
  const std::string script =
      "trap '' TERM; (setsid sh -c 'trap \"\" TERM; " + loop() + "' &); " + loop();
  ASSERT_TRUE(head.run(256, script)) << log();
  ASSERT_TRUE(head.wait([&] { return processes_with(word() + "; done").size() >= 2; }));
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  EXPECT_TRUE(head.wait([&] { return processes_with(word() + "; done").empty(); })) << log();
}

TEST_P(NodeFlow, EndsAPreparedAttemptThatIsKilled) {
  head.prepare(256, loop());
  ASSERT_NE(head.expect<wire::Prepared>(256), nullptr);
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
}

TEST_P(NodeFlow, SwitchesByTheTimetable) {
  ASSERT_TRUE(head.run(256, loop()));
  ASSERT_TRUE(head.run(512, loop()));
  // Boundaries are converted to the node's clock, so they move with its estimate of the head's
  // clock. From here on it gets no more clock samples.
  head.is_mute = true;
  head.take_turns(1, {256, 512}, 20ms);
  std::unique_ptr<wire::NodeTrace> trace;
  ASSERT_TRUE(head.wait([&] {
    wire::NodeTraceRequest request;
    request.set_tag(1);
    request.set_since_ns(60'000'000'000);
    head.send(request);
    for (const auto& frame : head.frames) {
      auto reply = proto::parse<wire::NodeTraceReply>(frame);
      if (reply && reply->trace().switches_size() > 10) {
        trace = std::make_unique<wire::NodeTrace>(reply->trace());
      }
    }
    return trace != nullptr;
  })) << log();
  for (int i = 2; i < trace->switches_size(); ++i) {
    const auto& before = trace->switches(i - 1);
    const auto& now = trace->switches(i);
    ASSERT_EQ(now.left_size(), 1);
    ASSERT_EQ(now.entered_size(), 1);
    EXPECT_EQ(now.left(0), before.entered(0)) << i;
    // A switcher that slept over boundaries continues at a later one. Drift is at most 500 ppm.
    const auto apart = now.due_ns() - before.due_ns();
    const auto quanta = (apart + 10'000'000) / 20'000'000;
    EXPECT_EQ(quanta % 2, 1) << i;
    EXPECT_LE(std::abs(apart - quanta * 20'000'000), quanta * 10'000) << i;
  }
}

// ---- Faults -------------------------------------------------------------------------------------

TEST_P(NodeFlow, LeavesNothingFrozenWhenItIsKilled) {
  ASSERT_TRUE(head.run(256, loop()));
  ASSERT_TRUE(head.run(512, loop()));
  head.take_turns(1, {256, 512}, 10ms);
  usleep(200'000);
  head.kill_node();
  const auto pids = processes_with(word() + "; done");
  ASSERT_EQ(pids.size(), 2U);
  const auto before = std::pair(ticks(pids[0]), ticks(pids[1]));
  EXPECT_TRUE(head.wait([&] {
    return ticks(pids[0]) > before.first + 10 && ticks(pids[1]) > before.second + 10;
  })) << log();
}

TEST_P(NodeFlow, AdoptsItsAttemptsAfterARestart) {
  ASSERT_TRUE(head.run(256, loop()));
  ASSERT_TRUE(head.run(512, "while ! [ -e " + (head.dir / "go").string() +
                                " ]; do sleep 0.01; done; echo late; exit 7"));
  head.take_turns(1, {256, 512}, 10ms);
  usleep(100'000);
  head.kill_node();
  head.start_node();
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  ASSERT_EQ(head.hellos[1].attempts_size(), 2) << log();
  EXPECT_EQ(head.hellos[1].attempts(0).phase(),
            static_cast<std::uint32_t>(base::AttemptPhase::Running));
  head.take_turns(2, {256, 512}, 10ms);
  close(open((head.dir / "go").c_str(), O_WRONLY | O_CREAT, 0644));
  const auto exited = head.expect<wire::Exited>(512);
  ASSERT_NE(exited, nullptr) << log();
  ASSERT_EQ(exited->exits_size(), 1);
  EXPECT_EQ(exited->exits(0).code(), 7);
  EXPECT_EQ(head.output(512), "late\n");
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
}

// A daemon that was killed together with the head, after the end of the tasks and before the head's
// commit, must still know the end.
TEST_P(NodeFlow, KeepsExitUntilHeadHasStoredIt) {
  head.forgets = false;
  ASSERT_TRUE(head.run(256, "echo out; exit 7")) << log();
  ASSERT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  for (std::size_t restarts = 1; restarts <= 2; ++restarts) {
    head.kill_node();
    head.start_node();
    ASSERT_TRUE(head.wait_for_node(restarts + 1)) << log();
    const auto& hello = head.hellos[restarts];
    ASSERT_EQ(hello.attempts_size(), 1) << log();
    const auto exited = head.expect<wire::Exited>(256);
    ASSERT_NE(exited, nullptr) << log();
    ASSERT_EQ(exited->exits_size(), 1);
    EXPECT_EQ(exited->exits(0).code(), 7);
  }
  EXPECT_EQ(head.output(256), "out\n");
  EXPECT_FALSE(std::filesystem::is_empty(head.dir / "shepherds"));
  head.forget(256);
  EXPECT_TRUE(head.wait([&] { return std::filesystem::is_empty(head.dir / "shepherds"); }));
}

// Other nodes may know the addresses of its sockets, and use them.
TEST_P(NodeFlow, KeepsPreparedSocketsOverRestart) {
  head.prepare_on(2, 256, loop());
  ASSERT_NE(head.expect<wire::Prepared>(256), nullptr) << log();
  head.start(256);
  ASSERT_NE(head.expect<wire::Started>(256), nullptr) << log();
  wire::NetworkPrepare prepare;
  prepare.set_attempt(256);
  prepare.set_key(4711);
  head.send(prepare);
  const auto before = head.expect<wire::NetworkPrepared>(256);
  ASSERT_NE(before, nullptr) << log();
  head.kill_node();
  head.start_node();
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  const auto after = head.expect<wire::NetworkPrepared>(256);
  ASSERT_NE(after, nullptr) << log();
  EXPECT_EQ(after->key(), 4711U);
  EXPECT_EQ(after->addresses(), before->addresses());
  EXPECT_FALSE(after->is_open());
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
}

// Returns how many frames of `key` for rank 0 the kernel drops at a socket, of one that is sent.
std::uint64_t drops_of(const std::string& address, std::uint64_t key) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::memcpy(&to.sin_addr, address.data(), 4);
  std::memcpy(&to.sin_port, address.data() + 4, 2);
  const auto end = fmt::format("{:08X}:{:04X}", to.sin_addr.s_addr, ntohs(to.sin_port));
  const auto dropped = [&end] {  // reads the last word of the socket's line
    const auto sockets = read_file("/proc/net/udp", 1U << 20U).value_or("");
    for (const auto line : split(sockets, '\n')) {
      if (line.find(end) == std::string_view::npos) continue;
      const auto words = split(line.substr(0, line.find_last_not_of(' ') + 1), ' ');
      return parse_number<std::uint64_t>(words.back()).value_or(0);
    }
    return std::uint64_t{0};
  };
  pm::FrameHeader h;
  h.key = key;
  const auto before = dropped();
  const UniqueFd sender(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_GT(sendto(sender.get(), &h, sizeof h, 0, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return dropped() - before;
}

TEST_P(NodeFlow, KernelDropsFramesOfUnknownJobs) {
  std::string address;
  for (const std::uint64_t attempt : {256, 512}) {
    head.prepare_on(2, attempt, loop());
    ASSERT_NE(head.expect<wire::Prepared>(attempt), nullptr) << log();
    wire::NetworkPrepare prepare;
    prepare.set_attempt(attempt);
    prepare.set_key(attempt + 1);
    head.send(prepare);
    const auto prepared = head.expect<wire::NetworkPrepared>(attempt);
    ASSERT_NE(prepared, nullptr) << log();
    if (!address.empty()) {
      EXPECT_EQ(prepared->addresses(), address);  // the jobs use it in turn
    }
    address = prepared->addresses();
    EXPECT_EQ(drops_of(address, 257), 0U);
    EXPECT_EQ(drops_of(address, 513), attempt == 512 ? 0U : 1U);
    EXPECT_EQ(drops_of(address, 1), 1U);
  }
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  EXPECT_TRUE(head.wait([&] { return drops_of(address, 257) == 1; }));
  EXPECT_EQ(drops_of(address, 513), 0U);
  head.kill(512);
  EXPECT_NE(head.expect<wire::Exited>(512), nullptr) << log();
}

TEST_P(NodeFlow, LosesNoOutputWithTheLink) {
  ASSERT_TRUE(head.run(256, "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; done"));
  ASSERT_TRUE(head.wait([&] { return head.output(256).size() > 1'000; }));
  head.break_link();
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  std::string all;
  for (int i = 1; i <= 3'000; ++i) all += std::to_string(i) + "\n";
  EXPECT_EQ(head.output(256), all);
}

TEST_P(NodeFlow, ReconnectsWhenTheHeadIsSilent) {
  head.is_mute = true;
  EXPECT_TRUE(head.wait_for_node(2)) << log();
}

TEST_P(NodeFlow, AdoptsLateShepherdThatSendsFirst) {
  ASSERT_TRUE(head.run(256, "while :; do echo " + word() + "; done"));
  ASSERT_TRUE(head.run(512, loop()));
  const pid_t late = find_shepherd("echo " + word() + "; done");
  ASSERT_GT(late, 0);
  head.kill_node();
  ::kill(late, SIGSTOP);
  head.start_node();
  usleep(1'500'000);
  ::kill(late, SIGCONT);
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  EXPECT_EQ(head.hellos[1].attempts_size(), 2) << log();
  head.kill(256);
  EXPECT_NE(head.expect<wire::Exited>(256), nullptr) << log();
  head.kill(512);
  EXPECT_NE(head.expect<wire::Exited>(512), nullptr) << log();
}

TEST_P(NodeFlow, EndsAnAttemptWhoseShepherdDied) {
  ASSERT_TRUE(head.run(256, loop()));
  const pid_t shepherd = find_shepherd(word() + "; done");
  ASSERT_GT(shepherd, 0);
  ::kill(shepherd, SIGKILL);
  const auto exited = head.expect<wire::Exited>(256);
  ASSERT_NE(exited, nullptr) << log();
  // Kernels before 6.15 do not report how a process ended that is not a child.
  EXPECT_TRUE(exited->reason() == "its shepherd was killed by signal 9" ||
              exited->reason() == "its shepherd died")
      << exited->reason();
  EXPECT_TRUE(head.wait([&] { return processes_with(word() + "; done").empty(); })) << log();
}

TEST_P(NodeFlow, JobsContinueWhenItStops) {
  ASSERT_TRUE(head.run(256, loop()));
  ASSERT_TRUE(head.run(512, loop()));
  head.take_turns(1, {256, 512}, 10ms);
  usleep(100'000);
  EXPECT_EQ(head.stop_node(), 0);
  const auto pids = processes_with(word() + "; done");
  ASSERT_EQ(pids.size(), 2U);
  const auto before = std::pair(ticks(pids[0]), ticks(pids[1]));
  EXPECT_TRUE(head.wait([&] {
    return ticks(pids[0]) > before.first + 10 && ticks(pids[1]) > before.second + 10;
  })) << log();
}

TEST_P(NodeFlow, RefusesASecondDaemonInItsDirectory) {
  const auto first = static_cast<pid_t>(head.hellos[0].pid());
  head.start_node();
  EXPECT_EQ(head.hellos.size(), 1U);
  EXPECT_TRUE(
      head.wait([&] { return log().find("another node daemon uses") != std::string::npos; }));
  ::kill(first, SIGKILL);
}

// ---- Filling ------------------------------------------------------------------------------------

// Attempt 256 sleeps for most of its turns, and 512 computes.
#define RUN_A_SLEEPER_AND_A_FILLER()                                       \
  ASSERT_TRUE(head.run(256, "while :; do sleep 0.01; done; : " + word())); \
  ASSERT_TRUE(head.run(512, loop()));                                      \
  if (head.idle_of(512).empty()) GTEST_SKIP() << "no cpu.idle";            \
  head.take_turns(1, {256, 512}, 10ms, true);                              \
  ASSERT_TRUE(head.wait([&] { return head.idle_of(512) == "1"; })) << log()

TEST_P(NodeFlow, FillsUnusedTimeAndReportsIt) {
  RUN_A_SLEEPER_AND_A_FILLER();
  EXPECT_NE(log().find("fill: cpu.idle of"), std::string::npos) << log();
  std::unique_ptr<wire::NodeTraceReply> reply;
  const auto lists_filler = [&] {
    wire::NodeTraceRequest request;
    request.set_tag(1);
    request.set_since_ns(60'000'000'000);
    head.send(request);
    for (const auto& frame : head.frames) {
      const auto trace = proto::parse<wire::NodeTraceReply>(frame);
      if (!trace) continue;
      for (const auto& record : trace->trace().switches()) {
        if (record.filling_size() == 1 && record.filling(0) == 512) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(head.wait(lists_filler)) << log();
  constexpr std::int64_t kSome = 10'000'000;  // ns
  const auto has_filled = [&] {
    for (const auto& frame : head.frames) {
      const auto sample = proto::parse<wire::NodeSample>(frame);
      if (!sample) continue;
      for (const auto& gang : sample->gangs()) {
        if (gang.attempt() == 512 && gang.filled_ns() > kSome) return true;
      }
    }
    return false;
  };
  ASSERT_TRUE(head.wait(has_filled)) << log();
  head.kill(512);
  const auto exited = head.expect<wire::Exited>(512);
  ASSERT_NE(exited, nullptr) << log();
  EXPECT_GT(exited->filled_ns(), kSome);
  EXPECT_TRUE(head.wait([&] { return head.idle_of(512).empty(); })) << log();
}

TEST_P(NodeFlow, LeavesNothingAtIdlePriorityWhenKilled) {
  RUN_A_SLEEPER_AND_A_FILLER();
  head.kill_node();
  EXPECT_TRUE(head.wait([&] { return head.idle_of(256) == "0" && head.idle_of(512) == "0"; }))
      << log();
  head.start_node();
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  head.take_turns(2, {256, 512}, 10ms, true);
  EXPECT_TRUE(head.wait([&] { return head.idle_of(512) == "1"; })) << log();
  head.kill(512);
  ASSERT_NE(head.expect<wire::Exited>(512), nullptr) << log();
  EXPECT_TRUE(head.wait([&] { return head.idle_of(512).empty(); })) << log();
}

TEST_P(NodeFlow, LeavesNothingAtIdlePriorityWhenItStops) {
  RUN_A_SLEEPER_AND_A_FILLER();
  EXPECT_EQ(head.stop_node(), 0);
  EXPECT_EQ(head.idle_of(256), "0");
  EXPECT_EQ(head.idle_of(512), "0");
}

// No switch stops a job without cores, so it may only have the time that gangs leave.
TEST_P(NodeFlow, JobWithoutCoresStaysAtIdlePriority) {
  ASSERT_TRUE(head.run(256, loop()));
  if (head.idle_of(256).empty()) GTEST_SKIP() << "no cpu.idle";
  head.gives_cores = false;
  ASSERT_TRUE(head.run(512, loop()));
  EXPECT_EQ(head.idle_of(512), "1");
  head.take_turns(1, {256}, 10ms, true);
  head.kill_node();
  ASSERT_TRUE(head.wait([&] { return head.idle_of(512) == "0"; })) << "the guard has acted";
  head.start_node();
  ASSERT_TRUE(head.wait_for_node(2)) << log();
  EXPECT_TRUE(head.wait([&] { return head.idle_of(512) == "1"; })) << log();
  EXPECT_EQ(head.idle_of(256), "0");
  head.kill(512);
  ASSERT_NE(head.expect<wire::Exited>(512), nullptr) << log();
}

TEST_P(NodeFlow, ShowsProofOfNewerHeadToOlderOne) {
  EXPECT_EQ(head.hellos[0].head_epoch(), 0U);
  ASSERT_TRUE(head.wait_for_beat());
  head.head_epoch = 7;
  head.head_proof = "proof";
  head.break_link();
  ASSERT_TRUE(head.wait_for_node(2) && head.wait_for_beat()) << log();
  EXPECT_EQ(head.hellos[1].head_epoch(), 1U);
  head.head_epoch = 6;
  head.head_proof = "older";
  head.break_link();
  ASSERT_TRUE(head.wait_for_node(4)) << log();  // it leaves the older one and reconnects
  for (const std::size_t i : {2, 3}) {
    EXPECT_EQ(head.hellos[i].head_epoch(), 7U);
    EXPECT_EQ(head.hellos[i].head_proof(), "proof");
  }
}

}  // namespace
}  // namespace score::node
