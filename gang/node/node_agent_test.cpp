#include "gang/node/node_agent.hpp"

#include "gang/job/epochs.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using base::Rank;

constexpr AttemptId kJob{257};
constexpr TimePoint kNow{50s};

base::PlacedTasks placed(AttemptId attempt = kJob) {
  return {attempt, base::UserId{1000}, 1, {2, 2}, base::Distribution::Block, {0, 1},
          {}};  // ranks 2 and 3
}

template <typename Message>
std::vector<Message> said(const NodeActions& actions) {
  std::vector<Message> out;
  for (const NodeAction& action : actions) {
    const auto* send = std::get_if<SendToHead>(&action);
    if (send == nullptr) continue;
    if (const auto* m = std::get_if<Message>(&send->message)) out.push_back(*m);
  }
  return out;
}

template <typename Action>
std::size_t count(const NodeActions& actions) {
  return static_cast<std::size_t>(std::count_if(
      actions.begin(), actions.end(), [](auto& a) { return std::holds_alternative<Action>(a); }));
}

struct Agent {
  NodeAgent agent{{{"node01", 2, base::Bytes{}}}};

  Agent() { agent.on_connected(kNow); }

  NodeActions head(const base::HeadToNode& m) { return agent.on_head(m, kNow); }

  NodeActions shepherd(const ShepherdEvent& e) { return agent.on_shepherd(kJob, e, kNow); }

  void prepare() {
    head(base::PrepareTasks{placed(), "spec"});
    shepherd(ShepherdReady{});
  }

  void run() {
    prepare();
    head(base::StartTasks{kJob});
    shepherd(ShepherdStarted{});
  }

  void synchronise(Duration offset = 0s) {
    agent.on_clock({kNow - 200us, kNow - 100us + offset, kNow - 100us + offset, kNow}, kNow);
  }
};

TEST(NodeAgent, LaunchesPreparesStartsAndReports) {
  Agent a;
  EXPECT_EQ(count<LaunchShepherd>(a.head(base::PrepareTasks{placed(), "spec"})), 1U);
  EXPECT_EQ(said<base::Prepared>(a.shepherd(ShepherdReady{})).size(), 1U);
  EXPECT_EQ(count<StartShepherd>(a.head(base::StartTasks{kJob})), 1U);
  EXPECT_EQ(said<base::Started>(a.shepherd(ShepherdStarted{})).size(), 1U);
  EXPECT_EQ(said<base::TaskEnded>(a.shepherd(ShepherdTaskExited{{Rank{3}, 5, 0}})).size(), 1U);
  a.shepherd(ShepherdTaskExited{{Rank{2}, 0, 0}});
  const auto done = a.shepherd(ShepherdDone{});
  ASSERT_EQ(said<base::Exited>(done).size(), 1U);
  EXPECT_EQ(said<base::Exited>(done)[0].exits,
            (std::vector<base::TaskExit>{{Rank{2}, 0, 0}, {Rank{3}, 5, 0}}));
  EXPECT_EQ(count<RetireAttempt>(done), 1U);
  EXPECT_EQ(count<RemoveAttempt>(done), 0U) << "the head has not stored the end";
  EXPECT_EQ(count<RemoveAttempt>(a.head(base::ForgetTasks{kJob})), 1U);
  EXPECT_TRUE(a.agent.attempts().empty());
  EXPECT_EQ(count<RemoveAttempt>(a.head(base::ForgetTasks{kJob})), 0U);
}

TEST(NodeAgent, RepeatedEndChangesNothing) {
  Agent a;
  a.run();
  a.agent.set_filled(kJob, 3s);
  base::Usage usage;
  usage.cpu_user = 5s;
  a.shepherd(ShepherdDone{usage});
  a.agent.set_filled(kJob, 0s);
  EXPECT_TRUE(a.shepherd(ShepherdDone{}).empty());
  EXPECT_EQ(a.agent.unexpected_count(), 0U);
  EXPECT_EQ(said<base::Exited>(a.head(base::KillTasks{kJob})).at(0).filled, 3s);
  EXPECT_EQ(said<base::Exited>(a.head(base::KillTasks{kJob})).at(0).usage, usage);
  EXPECT_EQ(count<RemoveAttempt>(a.shepherd(ShepherdGone{})), 1U) << "nothing is left to keep";
}

TEST(NodeAgent, KeepsAnAdoptedEndUntilItIsStored) {
  NodeAgent agent{{{"node01", 2, base::Bytes{}}}};
  const std::vector<base::TaskExit> exits{{Rank{2}, 0, 0}, {Rank{3}, 5, 0}};
  const auto adopted =
      agent.adopt(placed(), {kJob, base::AttemptPhase::Exited, exits, {}}, true, kNow);
  EXPECT_EQ(count<RetireAttempt>(adopted), 1U);
  EXPECT_EQ(count<RemoveAttempt>(adopted), 0U);
  const auto said_exits = said<base::Exited>(agent.on_connected(kNow));
  ASSERT_EQ(said_exits.size(), 1U);
  EXPECT_EQ(said_exits[0].exits, exits);
  EXPECT_EQ(count<RemoveAttempt>(agent.on_head(base::ForgetTasks{kJob}, kNow)), 1U);
}

TEST(NodeAgent, RepeatedMessagesOnlyRepeatTheAnswer) {
  Agent a;
  a.run();
  EXPECT_EQ(count<LaunchShepherd>(a.head(base::PrepareTasks{placed(), "spec"})), 0U);
  const auto again = a.head(base::StartTasks{kJob});
  EXPECT_EQ(count<StartShepherd>(again), 0U);
  EXPECT_EQ(said<base::Started>(again).size(), 1U);
  a.shepherd(ShepherdDone{});
  EXPECT_EQ(said<base::Exited>(a.head(base::KillTasks{kJob})).size(), 1U);
  EXPECT_EQ(said<base::Exited>(a.head(base::StartTasks{kJob})).size(), 1U);
}

TEST(NodeAgent, KillOfUnknownAttemptIsAnsweredAsExited) {
  Agent a;
  const auto exited = said<base::Exited>(a.head(base::KillTasks{AttemptId{9}}));
  ASSERT_EQ(exited.size(), 1U);
  EXPECT_TRUE(exited[0].exits.empty());
}

TEST(NodeAgent, RefusalLeavesNothing) {
  Agent a;
  a.head(base::PrepareTasks{placed(), "spec"});
  const auto actions = a.shepherd(ShepherdRefused{127, "a.out: No such file"});
  EXPECT_EQ(count<RemoveAttempt>(actions), 1U);
  EXPECT_EQ(said<base::Refused>(actions).at(0).exit_code, 127);
  EXPECT_TRUE(a.agent.attempts().empty());
}

TEST(NodeAgent, ReportsInClusterTimeWhenTasksEnded) {
  Agent a;
  a.run();
  a.synchronise(1000s);
  const auto ended = a.shepherd(ShepherdTaskExited{{Rank{2}, 5, 0, kNow - 1ms}});
  EXPECT_EQ(said<base::TaskEnded>(ended).at(0).exit.ended, kNow - 1ms + 1000s);
  const auto abort = a.shepherd(ShepherdAbort{Rank{3}, 7, "why", kNow - 2ms});
  EXPECT_EQ(said<base::AbortRequested>(abort).at(0).asked, kNow - 2ms + 1000s);
}

TEST(NodeAgent, ReportsNoTimeThatCannotBeCompared) {
  constexpr base::TimePoint kNever{};
  Agent a;
  a.run();
  const auto early = a.shepherd(ShepherdTaskExited{{Rank{2}, 5, 0, kNow - 1ms}});
  EXPECT_EQ(said<base::TaskEnded>(early).at(0).exit.ended, kNever) << "not synchronised";
  a.synchronise();
  const auto future = a.shepherd(ShepherdTaskExited{{Rank{3}, 5, 0, base::TimePoint::max()}});
  EXPECT_EQ(said<base::TaskEnded>(future).at(0).exit.ended, kNever);
}

TEST(NodeAgent, TasksOfDeadShepherdCountAsKilled) {
  Agent a;
  a.run();
  const auto actions = a.shepherd(ShepherdGone{.signal = 9});
  EXPECT_EQ(count<KillAttempt>(actions), 1U);
  const auto exited = said<base::Exited>(actions).at(0);
  EXPECT_EQ(exited.reason, "its shepherd was killed by signal 9");
  EXPECT_EQ(exited.exits, (std::vector<base::TaskExit>{{Rank{2}, 0, 9}, {Rank{3}, 0, 9}}));
}

TEST(NodeAgent, OutOfMemoryKillsAreReportedAtEnd) {
  Agent a;
  a.run();
  a.agent.note_oom_kills(kJob, 0, "no reason");
  a.agent.note_oom_kills(kJob, 2, "memory limit 64M exceeded");
  const auto exited = said<base::Exited>(a.shepherd(ShepherdDone{})).at(0);
  EXPECT_EQ(exited.reason, "memory limit 64M exceeded");
  EXPECT_EQ(exited.oom_kills, 2U);
}

TEST(NodeAgent, DelayedReportsFollowTheNextHello) {
  Agent a;
  a.run();
  a.agent.on_disconnected(kNow);
  EXPECT_EQ(count<SendToHead>(a.shepherd(ShepherdAbort{Rank{2}, 7, "why"})), 0U);
  auto hello = a.agent.on_connected(kNow);
  EXPECT_EQ(said<base::NodeHello>(hello).at(0).attempts.at(0).phase, base::AttemptPhase::Running);
  EXPECT_EQ(said<base::AbortRequested>(hello).at(0).code, 7);
  a.agent.on_disconnected(kNow);
  a.agent.end_attempt(kJob, "memory limit 64M exceeded", kNow);
  a.shepherd(ShepherdDone{});
  for (int i = 0; i < 2; ++i) {
    hello = a.agent.on_connected(kNow);
    EXPECT_EQ(said<base::Exited>(hello).at(0).reason, "memory limit 64M exceeded");
  }
}

TEST(NodeAgent, FollowsTimetableInNodeTimeOnceSynchronised) {
  Agent a;
  const base::Timetable table{Epoch{3}, TimePoint{1051s}, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  EXPECT_EQ(count<FollowPlan>(a.head(base::SetTimetable{table})), 0U) << "no clock yet";
  a.synchronise(1000s);
  EXPECT_EQ(a.agent.plan().epoch, Epoch{3});
  EXPECT_EQ(a.agent.plan().start, TimePoint{51s});
  EXPECT_EQ(a.agent.late_count(), 0U);
}

TEST(NodeAgent, IgnoresOldEpochsAndReportsBadTimetables) {
  Agent a;
  a.synchronise();
  base::Timetable table{Epoch{5}, kNow - 30ms, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  auto actions = a.head(base::SetTimetable{table});
  EXPECT_EQ(count<FollowPlan>(actions), 1U);
  EXPECT_EQ(said<base::TimetableApplied>(actions).at(0).late, 30ms);
  EXPECT_EQ(a.agent.late_count(), 1U);
  EXPECT_TRUE(a.head(base::SetTimetable{table}).empty());
  table.epoch = Epoch{4};
  EXPECT_TRUE(a.head(base::SetTimetable{table}).empty());
  table.epoch = Epoch{6};
  table.cycle = 1h;
  actions = a.head(base::SetTimetable{table});
  EXPECT_EQ(said<base::TimetableApplied>(actions).at(0).late, Duration::max());
  EXPECT_EQ(a.agent.plan().epoch, Epoch{5});
}

TEST(NodeAgent, RefusesEpochsThatNoHeadCanHaveSent) {
  Agent a;
  a.agent.set_head(Epoch{2});
  a.synchronise();
  const Epoch first{epochs_before(Epoch{2}).value() + 7};
  base::Timetable table{first, kNow, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  EXPECT_EQ(count<FollowPlan>(a.head(base::SetTimetable{table})), 1U);
  base::Timetable forged = table;
  forged.segments[0].jobs.clear();
  for (const std::uint64_t epoch :
       {UINT64_MAX, epochs_before(Epoch{3}).value() + 1, first.value() + kMostEpochStep + 1}) {
    forged.epoch = Epoch{epoch};
    const auto actions = a.head(base::SetTimetable{forged});
    EXPECT_EQ(count<FollowPlan>(actions), 0U);
    EXPECT_EQ(said<base::TimetableApplied>(actions).at(0).late, Duration::max());
  }
  table.epoch = Epoch{first.value() + kMostEpochStep};
  EXPECT_EQ(count<FollowPlan>(a.head(base::SetTimetable{table})), 1U);
}

TEST(NodeAgent, ForgetsEpochAboveThoseOfItsHead) {
  Agent a;
  a.synchronise();
  base::Timetable table{Epoch{UINT64_MAX}, kNow, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  a.head(base::SetTimetable{table});
  a.agent.on_connected(kNow);
  a.agent.set_head(Epoch{2});
  a.synchronise();
  table.epoch = Epoch{epochs_before(Epoch{2}).value() + 1};
  EXPECT_EQ(count<FollowPlan>(a.head(base::SetTimetable{table})), 1U);
}

TEST(NodeAgent, ReplansOnlyAfterALargeClockChange) {
  Agent a;
  a.synchronise();
  const base::Timetable table{Epoch{1}, kNow + 1s, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  a.head(base::SetTimetable{table});
  const auto exchange = [&](Duration offset) {
    // The round trip is shorter, so this sample is trusted.
    return a.agent.on_clock({kNow - 20us, kNow - 10us + offset, kNow - 10us + offset, kNow}, kNow);
  };
  EXPECT_EQ(count<FollowPlan>(exchange(10us)), 0U);
  Agent b;
  b.synchronise();
  b.head(base::SetTimetable{table});
  const auto moved = b.agent.on_clock({kNow - 20us, kNow + 60us, kNow + 60us, kNow}, kNow);
  EXPECT_EQ(count<FollowPlan>(moved), 1U);
  EXPECT_EQ(b.agent.plan().start, kNow + 1s - 70us);
}

TEST(NodeAgent, ReportsActivityOncePerConnection) {
  Agent a;
  a.run();
  const base::Activity idle{.idle = true, .sent = 3, .received = 3};
  EXPECT_EQ(said<base::ActivityChanged>(a.agent.on_activity(kJob, idle, kNow)).size(), 1U);
  EXPECT_TRUE(a.agent.on_activity(kJob, idle, kNow).empty());
  a.agent.on_disconnected(kNow);
  const auto again = said<base::ActivityChanged>(a.agent.on_connected(kNow));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].activity, idle);
  EXPECT_TRUE(a.agent.on_activity(AttemptId{99}, idle, kNow).empty());
}

TEST(NodeAgent, RepeatsActivityUntilTimetableReflectsIt) {
  Agent a;
  a.run();
  a.synchronise();
  base::Timetable table{Epoch{1}, kNow + 1s, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}};
  a.head(base::SetTimetable{table});
  const auto repeated = [&] {
    return said<base::ActivityChanged>(a.agent.repeat_activities(kNow)).size();
  };
  EXPECT_EQ(repeated(), 0U) << "busy, and in the timetable";
  a.agent.on_activity(kJob, {.idle = true}, kNow);
  EXPECT_EQ(repeated(), 1U) << "idle, and in the timetable";
  table = {Epoch{2}, kNow + 1s, 100ms, {{0ms, 100ms, {}}}, {}};
  table.background = {kJob};
  a.head(base::SetTimetable{table});
  EXPECT_EQ(repeated(), 0U);
  a.agent.on_activity(kJob, {}, kNow);
  EXPECT_EQ(repeated(), 1U) << "busy, and in the background";
}

// The watch begins when the attempt is prepared and reports each observation once.
TEST(NodeAgent, ReportsActivityObservedBeforeItRan) {
  Agent a;
  a.prepare();
  a.synchronise();
  EXPECT_TRUE(a.agent.on_activity(kJob, {.idle = true}, kNow).empty());
  a.head(base::SetTimetable{{Epoch{1}, kNow + 1s, 100ms, {{0ms, 100ms, {kJob}}}, {kJob}}});
  EXPECT_TRUE(a.agent.repeat_activities(kNow).empty());
  a.head(base::StartTasks{kJob});
  a.shepherd(ShepherdStarted{});
  EXPECT_EQ(said<base::ActivityChanged>(a.agent.repeat_activities(kNow)).size(), 1U);
}

TEST(NodeAgent, AdoptedForkingAttemptHasNotBegun) {
  for (const bool has_begun : {false, true}) {
    NodeAgent agent{{{"node01", 2, base::Bytes{}}}};
    agent.adopt(placed(), {kJob, base::AttemptPhase::Running, {}, {}}, has_begun, kNow);
    agent.on_connected(kNow);
    const auto answer = agent.on_head(base::StartTasks{kJob}, kNow);
    EXPECT_EQ(count<StartShepherd>(answer), 0U) << "it was started before";
    EXPECT_EQ(said<base::Started>(answer).size(), has_begun ? 1U : 0U);
    const auto started = agent.on_shepherd(kJob, ShepherdStarted{}, kNow);
    EXPECT_EQ(said<base::Started>(started).size(), has_begun ? 0U : 1U);
  }
}

// A job of queue high has the cores of another, and ends while the head is gone.
TEST(NodeAgent, LetsDisplacedAttemptsRunWithoutHead) {
  constexpr AttemptId kDisplaced{513}, kSuspended{769};
  Agent a;
  a.synchronise();
  a.run();
  base::Timetable table{
      Epoch{1}, kNow, 100ms, {{0s, 100ms, {kJob}}}, {kJob, kDisplaced, kSuspended}};
  table.displaced = {kDisplaced};
  a.head(base::SetTimetable{table});
  const TimePoint later = kNow + NodeAgent::kHeadless;
  EXPECT_TRUE(a.agent.release_displaced(true, kNow).empty()) << "the head is there";
  EXPECT_TRUE(a.agent.release_displaced(false, later).empty()) << "the job of queue high runs";
  a.shepherd(ShepherdDone{});
  EXPECT_TRUE(a.agent.release_displaced(false, later - 1ns).empty());
  EXPECT_EQ(count<FollowPlan>(a.agent.release_displaced(false, later)), 1U);
  EXPECT_EQ(a.agent.plan().managed, (std::vector<AttemptId>{kJob, kSuspended}));
  EXPECT_TRUE(a.agent.release_displaced(false, later).empty()) << "once";
}

TEST(NodeAgent, UnexpectedMessagesAreCountedAndHarmless) {
  Agent a;
  auto bad = placed();
  bad.node_index = 7;
  EXPECT_EQ(said<base::Refused>(a.head(base::PrepareTasks{bad, ""})).size(), 1U);
  bad.tasks_on_node.assign(8, UINT32_MAX);
  EXPECT_EQ(said<base::Refused>(a.head(base::PrepareTasks{bad, ""})).size(), 1U);
  a.run();
  a.shepherd(ShepherdTaskExited{{Rank{77}, 0, 0}});
  a.shepherd(ShepherdReady{});
  a.agent.on_shepherd(AttemptId{5}, ShepherdDone{}, kNow);
  EXPECT_EQ(a.agent.unexpected_count(), 5U);
  EXPECT_EQ(a.agent.attempts().size(), 1U);
}

}  // namespace
}  // namespace score::gang
