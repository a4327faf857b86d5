#include "scored/job/shepherd/shepherd_agent.hpp"

#include "base/model/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <signal.h>
#include <string>
#include <utility>
#include <vector>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;
using ActionKind = ShepherdAgent::ActionKind;
using Event = ShepherdAgent::Event;
using Facts = ShepherdAgent::Facts;
using Input = ShepherdAgent::Input;
using Job = ShepherdAgent::Job;
using Phase = ShepherdAgent::Phase;

const base::TimePoint kNow{100s};
constexpr Facts kAllOver{.all_ended = true, .output_read = true};
constexpr Facts kOwed{.all_ended = true, .output_read = true, .output_owed = true};
constexpr Job kPlain{};
constexpr Job kSpawning{.can_spawn = true};

constexpr std::array kPhases = {"Preparing", "Prepared", "Starting", "Running",
                                "Draining",  "Done",     "Ended"};
constexpr std::array kActions = {"PrepareTasks",  "SendReady",       "SendRefused", "BeginTasks",
                                 "TasksStarted",  "FailStart",       "SignalTasks", "AbandonVolume",
                                 "CloseSpawner",  "KillChildren",    "LogSpawner",  "Reap",
                                 "AbortJob",      "SendAbort",       "ServeWorld",  "ForkWorld",
                                 "EndWorld",      "RefuseRoom",      "GiveUpRoom",  "CloseInput",
                                 "KillLeftovers", "RemoveLeftovers", "LimitOutput", "SendReport",
                                 "SendStarted",   "SendDone",        "StartTimer",  "Quit"};
static_assert(kActions.size() == static_cast<std::size_t>(ActionKind::Quit) + 1);

// Reports the event. Returns the names of the actions, and of the phase if it has changed.
std::string on(ShepherdAgent& agent, const Input& input, const Facts& facts = kAllOver,
               base::TimePoint now = kNow) {
  const auto before = agent.phase();
  std::string text;
  for (const auto& action : agent.on(input, facts, now)) {
    text += std::string(text.empty() ? "" : " ") + kActions[static_cast<std::size_t>(action.what)];
  }
  if (agent.phase() == before) return text;
  return text + " >" + kPhases[static_cast<std::size_t>(agent.phase())];
}

ShepherdAgent agent_in(Phase phase, const Job& job = kPlain) {
  const std::vector<Input> steps = {{Event::TasksPrepared},   {Event::Start},
                                    {Event::AllForked},       {Event::TaskEnded},
                                    {Event::LeftoversKilled}, {Event::End}};
  ShepherdAgent agent;
  on(agent, {Event::SpawnerFound, 77});
  if (phase != Phase::Preparing) on(agent, {.event = Event::Planned, .job = job});
  for (const auto& step : steps) {
    if (agent.phase() < phase) on(agent, step);
  }
  EXPECT_EQ(agent.phase(), phase);
  return agent;
}

struct Row {
  Input input;
  std::array<std::string, 6> expected;  // from Preparing, without a plan, to Done
};

Row same(Event event, const std::string& expected, int value = 0) {
  return {{event, value}, {expected, expected, expected, expected, expected, expected}};
}

TEST(ShepherdAgent, HandlesEachEventInEachPhase) {
  const std::string refusal = "SendRefused Quit >Ended";
  const std::string kill = "AbandonVolume CloseSpawner KillChildren FailStart >Running";
  const std::string late_kill = "AbandonVolume SignalTasks";
  const std::vector<Row> rows = {
      {{Event::Planned}, {"PrepareTasks", "", "", "", "", ""}},
      same(Event::PmixEnded, "StartTimer"),
      {{Event::PmixFailed}, {refusal, "AbortJob", "AbortJob", "AbortJob", "", ""}},
      same(Event::VolumeReady, ""),
      same(Event::TasksPrepared, ""),
      {{Event::Refused}, {refusal, "", "", "", "", ""}},
      same(Event::SpawnerFound, "", 78),
      {{Event::Start}, {"", "BeginTasks >Starting", "", "", "", ""}},
      {{Event::AllForked}, {"", "", "TasksStarted Reap >Running", "", "", ""}},
      {{Event::SpawnerFailed},
       {"LogSpawner", "LogSpawner", "FailStart >Running", "LogSpawner", "LogSpawner",
        "LogSpawner"}},
      {{Event::Signal, SIGTERM}, {"", "", "", "SignalTasks", "SignalTasks", "SignalTasks"}},
      {{Event::Signal, SIGKILL}, {"AbandonVolume", kill, kill, late_kill, late_kill, late_kill}},
      same(Event::Signal, "", 0),
      same(Event::Signal, "", 4711),
      {{Event::ChildEnded}, {"", "", "", "Reap", "Reap KillLeftovers", "Reap"}},
      {{Event::TaskEnded}, {"", "", "", "CloseInput KillLeftovers >Draining", "", ""}},
      same(Event::Abort, "SendAbort"),
      same(Event::WorldRequested, ""),
      same(Event::WorldReady, ""),
      same(Event::WorldFailed, ""),
      same(Event::RoomClosed, ""),
      {{Event::LeftoversKilled, 0},
       {"", "", "", "", "RemoveLeftovers StartTimer SendDone >Done", ""}},
      {{Event::LeftoversKilled, 3}, {"", "", "", "", "StartTimer", ""}},
      same(Event::OutputMoved, ""),
      same(Event::DaemonLost, "StartTimer"),
      same(Event::OutputRefused, ""),
      {{Event::Resume, 1},
       {"SendReport", "SendReport", "SendReport", "SendReport", "SendReport",
        "SendReport SendDone"}},
      same(Event::End, "Quit >Ended"),
      {{Event::PmixMissed}, {"AbortJob", "AbortJob", "AbortJob", "AbortJob", "", ""}},
      {{Event::KillAgain}, {"", "", "", "", "Reap KillLeftovers", ""}},
      {{Event::DrainGraceOver}, {"", "", "", "", "LimitOutput", ""}},
      same(Event::TakingOverdue, ""),
      same(Event::DaemonCheck, "StartTimer"),
  };
  std::vector<bool> is_tested(static_cast<std::size_t>(Event::DaemonCheck) + 1);
  for (const auto& row : rows) {
    const auto event = static_cast<std::size_t>(row.input.event);
    is_tested[event] = true;
    for (std::size_t phase = 0; phase < row.expected.size(); ++phase) {
      auto agent = agent_in(static_cast<Phase>(phase));
      EXPECT_EQ(on(agent, row.input), row.expected[phase])
          << "event " << event << " value " << row.input.value << " in " << kPhases[phase];
    }
    auto ended = agent_in(Phase::Ended);
    EXPECT_EQ(on(ended, row.input), "") << event;
  }
  EXPECT_TRUE(std::ranges::all_of(is_tested, [](bool is) { return is; }));
}

TEST(ShepherdAgent, PreparesTasksWhenTheVolumeIsReady) {
  ShepherdAgent agent;
  EXPECT_TRUE(agent.awaits_plan());
  EXPECT_EQ(on(agent, {.event = Event::Planned, .job = {.has_volume = true}}), "");
  EXPECT_FALSE(agent.awaits_plan());
  EXPECT_EQ(on(agent, {Event::VolumeReady}), "PrepareTasks");
  EXPECT_EQ(on(agent, {Event::VolumeReady}), "");
  EXPECT_EQ(on(agent, {Event::TasksPrepared}), " >Prepared");
  EXPECT_EQ(on(agent, {Event::SpawnerFound, 77}), "SendReady") << "it was not known before";
  EXPECT_EQ(agent.group(), 77);
}

TEST(ShepherdAgent, NodeWithoutTasksDrainsAtStart) {
  auto agent = agent_in(Phase::Prepared, {.has_tasks = false});
  EXPECT_EQ(on(agent, {Event::Start}),
            "BeginTasks TasksStarted Reap CloseInput KillLeftovers >Draining");
}

TEST(ShepherdAgent, EarlySignalsReachTasksAfterStart) {
  auto agent = agent_in(Phase::Prepared);
  on(agent, {Event::Signal, SIGUSR1});
  on(agent, {Event::Start});
  on(agent, {Event::Signal, SIGUSR1});
  on(agent, {Event::Signal, SIGTERM});
  const auto actions = agent.on({Event::AllForked}, {}, kNow);
  ASSERT_EQ(actions.size(), 4U);
  EXPECT_EQ(actions[0], (ShepherdAgent::Action{ActionKind::SignalTasks, SIGUSR1}));
  EXPECT_EQ(actions[1], (ShepherdAgent::Action{ActionKind::SignalTasks, SIGTERM}));
}

TEST(ShepherdAgent, ReportsOnlyFirstAbort) {
  auto agent = agent_in(Phase::Running);
  EXPECT_EQ(on(agent, {Event::Abort}), "SendAbort");
  EXPECT_EQ(on(agent, {Event::Abort}), "");
  const auto actions = agent.on({Event::TaskEnded}, kAllOver, kNow);
  EXPECT_EQ(actions.front(), (ShepherdAgent::Action{ActionKind::CloseInput, 0}));
}

// ---- tasks that programs start

TEST(ShepherdAgent, StartsOneWorldAtATime) {
  auto agent = agent_in(Phase::Running, kSpawning);
  EXPECT_TRUE(agent.takes_worlds());
  EXPECT_EQ(on(agent, {Event::WorldRequested}), "ServeWorld");
  EXPECT_EQ(on(agent, {Event::WorldRequested}), "");
  EXPECT_EQ(on(agent, {Event::ChildEnded}), "") << "it may be a task that was not reported yet";
  EXPECT_EQ(on(agent, {Event::WorldReady}), "ForkWorld");
  EXPECT_EQ(on(agent, {Event::AllForked}), "EndWorld Reap");
  EXPECT_EQ(on(agent, {Event::WorldRequested}), "ServeWorld");
  EXPECT_EQ(on(agent, {Event::WorldFailed}), "EndWorld Reap");
}

TEST(ShepherdAgent, WorldWaitsForFirstTasks) {
  auto agent = agent_in(Phase::Starting, kSpawning);
  EXPECT_EQ(on(agent, {Event::WorldRequested}), "");
  EXPECT_EQ(on(agent, {Event::AllForked}), "TasksStarted ServeWorld >Running");
  auto failing = agent_in(Phase::Starting, kSpawning);
  on(failing, {Event::WorldRequested});
  EXPECT_EQ(on(failing, {Event::SpawnerFailed}), "FailStart EndWorld Reap >Running");
}

TEST(ShepherdAgent, WaitsForTasksUntilRoomIsClosed) {
  auto agent = agent_in(Phase::Running, kSpawning);
  EXPECT_EQ(on(agent, {Event::TaskEnded}), "");
  EXPECT_EQ(on(agent, {Event::RoomClosed}), "CloseSpawner RefuseRoom GiveUpRoom");
  EXPECT_EQ(on(agent, {Event::RoomClosed}), "");
  EXPECT_EQ(on(agent, {Event::TaskEnded}), "CloseInput KillLeftovers >Draining");
}

TEST(ShepherdAgent, KillAndLostSpawnerCloseRoom) {
  auto killed = agent_in(Phase::Running, kSpawning);
  on(killed, {Event::WorldRequested});
  EXPECT_EQ(on(killed, {Event::Signal, SIGKILL}),
            "AbandonVolume SignalTasks CloseSpawner RefuseRoom EndWorld Reap GiveUpRoom");
  auto lost = agent_in(Phase::Running, kSpawning);
  EXPECT_EQ(on(lost, {Event::SpawnerFailed}), "LogSpawner CloseSpawner RefuseRoom GiveUpRoom");
}

TEST(ShepherdAgent, ResumeWithoutTasksReportsStart) {
  auto agent = agent_in(Phase::Running, kSpawning);
  EXPECT_EQ(on(agent, {Event::Resume, 0}), "SendReport SendStarted");
  EXPECT_EQ(on(agent, {Event::Resume, 1}), "SendReport");
}

// ---- the end

TEST(ShepherdAgent, KillsLeftoversUntilGraceEnds) {
  auto agent = agent_in(Phase::Draining);
  EXPECT_EQ(on(agent, {Event::LeftoversKilled, 2}, {}), "StartTimer");
  EXPECT_EQ(on(agent, {Event::KillAgain}, {}), "Reap KillLeftovers");
  EXPECT_EQ(on(agent, {Event::LeftoversKilled, 2}, {}, kNow + LeftoverKill::kGrace),
            "RemoveLeftovers StartTimer");
  EXPECT_EQ(on(agent, {Event::KillAgain}, {}), "");
  EXPECT_EQ(on(agent, {Event::DrainGraceOver}, {}), "LimitOutput");
  EXPECT_EQ(on(agent, {Event::OutputMoved}, {}), "");
  EXPECT_EQ(on(agent, {Event::OutputMoved}, kAllOver), "SendDone >Done");
}

TEST(ShepherdAgent, DoneWaitsForOutputToBeTaken) {
  auto agent = agent_in(Phase::Draining);
  EXPECT_EQ(on(agent, {Event::LeftoversKilled, 0}, kOwed), "RemoveLeftovers StartTimer StartTimer");
  EXPECT_EQ(on(agent, {Event::OutputMoved}, kOwed), "") << "one timer is enough";
  auto overdue = agent;
  EXPECT_EQ(on(agent, {Event::OutputMoved}), "SendDone >Done");
  EXPECT_EQ(on(overdue, {Event::TakingOverdue}, kOwed), "SendDone >Done");
}

TEST(ShepherdAgent, ResumeMakesDoneWaitWithoutLimit) {
  auto agent = agent_in(Phase::Done);
  const auto actions = agent.on({Event::Resume, 1}, kOwed, kNow);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].value, static_cast<int>(base::AttemptPhase::Running));
  EXPECT_EQ(on(agent, {Event::TakingOverdue}, kOwed), "");
  EXPECT_EQ(on(agent, {Event::OutputMoved}), "SendDone >Done");
}

TEST(ShepherdAgent, RefusedOutputMakesDoneWaitWithoutLimit) {
  auto agent = agent_in(Phase::Draining);
  on(agent, {Event::LeftoversKilled, 0}, kOwed);
  EXPECT_EQ(on(agent, {Event::OutputRefused}, kOwed), "");
  EXPECT_EQ(on(agent, {Event::TakingOverdue}, kOwed), "");
  EXPECT_EQ(on(agent, {Event::OutputMoved}), "SendDone >Done");
  auto done = agent_in(Phase::Done);
  EXPECT_EQ(on(done, {Event::OutputRefused}, kOwed), " >Draining");
  EXPECT_EQ(on(done, {Event::OutputMoved}), "SendDone >Done");
}

TEST(ShepherdAgent, GivesUpWithoutDaemon) {
  for (const auto phase : {Phase::Preparing, Phase::Running, Phase::Done}) {
    auto agent = agent_in(phase);
    on(agent, {Event::DaemonLost});
    EXPECT_EQ(on(agent, {Event::DaemonCheck, 1}), "StartTimer");
    EXPECT_EQ(on(agent, {Event::DaemonCheck, 1}), "StartTimer");
    EXPECT_EQ(on(agent, {Event::DaemonCheck, 1}), "Quit >Ended");
  }
}

TEST(ShepherdAgent, KeepsVolumeLongerThanDoneJob) {
  const auto later = kNow + LostDaemon::kDoneLinger + 1ms;
  auto done = agent_in(Phase::Done);
  on(done, {Event::DaemonLost});
  EXPECT_EQ(on(done, {Event::DaemonCheck, 0}, kAllOver, later), "Quit >Ended");
  ShepherdAgent serving;
  on(serving, {.event = Event::Planned, .job = {.has_tasks = false, .has_volume = true}});
  for (const auto event : {Event::VolumeReady, Event::TasksPrepared, Event::Start,
                           Event::LeftoversKilled, Event::DaemonLost}) {
    on(serving, {event});
  }
  EXPECT_EQ(serving.phase(), Phase::Done);
  EXPECT_EQ(on(serving, {Event::DaemonCheck, 0}, kAllOver, later), "StartTimer");
}

// ---- random sequences

// Acts as the shell of an agent: it carries out the actions on a model of the tasks.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed), size_(1 + pick(3)) {
    can_spawn_ = pick(2) == 0;
    report({Event::DaemonLost});
    report({Event::SpawnerFound, 77});
    report({.event = Event::Planned, .job = {.can_spawn = can_spawn_, .has_volume = pick(2) == 0}});
  }

  // Lets something happen at random, including events that have no meaning now.
  void step() {
    now_ += std::chrono::milliseconds(pick(50));
    const auto event = static_cast<Event>(pick(static_cast<int>(Event::DaemonCheck) + 1));
    const bool is_own =
        event == Event::Planned || event == Event::TasksPrepared || event == Event::Refused ||
        event == Event::PmixFailed || event == Event::End || event == Event::LeftoversKilled ||
        event == Event::TaskEnded || event == Event::AllForked || event == Event::DaemonCheck;
    if (is_own) return progress();
    if (event == Event::SpawnerFailed) is_forking_ = false;
    if (event == Event::OutputMoved) owed_ = pick(2) == 0;
    if (event == Event::Resume) {
      // The resume of an agent that has reported Done is answered by another Done.
      if (agent_.phase() == Phase::Done) ++expected_;
      owed_ = owed_ || pick(2) == 0;
    }
    if (event == Event::OutputRefused && agent_.phase() == Phase::Done && owed_) ++expected_;
    report({event, event == Event::Signal && pick(4) == 0 ? SIGKILL : pick(3)});
  }

  // Lets what is under way go on: forking, the end of tasks, output, timers.
  void progress() {
    if (is_forking_) {
      is_forking_ = false;
      running_ = std::max(running_, 1);
      return report({Event::AllForked});
    }
    if (running_ > 0 && (is_killed_ || pick(4) == 0)) --running_;
    report({Event::ChildEnded});
    for (const auto event : std::exchange(timers_, {})) {
      if (event != Event::DaemonCheck) report({event});
    }
  }

  // Ends the job as the node daemon does: what is missing arrives, the tasks are killed, the front
  // end takes the output.
  void finish() {
    for (const auto event : {Event::VolumeReady, Event::Start}) report({event});
    for (int i = 0; i < 20 && agent_.phase() != Phase::Done; ++i) {
      report({Event::Signal, SIGKILL});
      progress();
      report({Event::RoomClosed});
      owed_ = false;
      report({Event::OutputMoved});
      now_ += 1s;
    }
  }

  void end() { report({Event::End}); }

  [[nodiscard]] Phase phase() const { return agent_.phase(); }

  [[nodiscard]] int done_count() const { return done_; }

  [[nodiscard]] int expected_count() const { return expected_; }

  [[nodiscard]] int quit_count() const { return quit_; }

 private:
  int pick(int below) { return std::uniform_int_distribution(0, below - 1)(random_); }

  void report(const Input& input) {
    const Facts facts{ended_ == size_, output_read_, owed_};
    for (const auto& action : agent_.on(input, facts, now_)) carry_out(action);
  }

  // Ends all tasks that have no process.
  void give_up() {
    is_given_up_ = true;
    ended_ = size_ - running_;
    report({Event::TaskEnded});
  }

  void carry_out(const ShepherdAgent::Action& action) {
    switch (action.what) {
      case ActionKind::PrepareTasks:
        return report({Event::TasksPrepared});
      case ActionKind::BeginTasks:
      case ActionKind::ForkWorld:
        is_forking_ = true;
        return;
      case ActionKind::CloseSpawner:
        is_forking_ = false;
        return;
      case ActionKind::SignalTasks:
        is_killed_ = is_killed_ || action.value == SIGKILL;
        return;
      case ActionKind::TasksStarted:
        running_ = can_spawn_ ? 1 : size_;
        return;
      case ActionKind::FailStart:
        running_ = 0;
        return give_up();
      case ActionKind::GiveUpRoom:
        return give_up();
      case ActionKind::Reap:
        if (!can_spawn_ || is_given_up_) ended_ = size_ - running_;
        return report({Event::TaskEnded});
      case ActionKind::KillLeftovers:
        return report({Event::LeftoversKilled, pick(2)});
      case ActionKind::LimitOutput:
        output_read_ = true;
        return report({Event::OutputMoved});
      case ActionKind::StartTimer:
        timers_.push_back(static_cast<Event>(action.value));
        return;
      case ActionKind::SendDone:
        EXPECT_EQ(ended_, size_);
        EXPECT_TRUE(output_read_);
        ++done_;
        return;
      case ActionKind::Quit:
        ++quit_;
        return;
      default:
        return;
    }
  }

  std::mt19937 random_;
  ShepherdAgent agent_;
  base::TimePoint now_ = kNow;
  std::vector<Event> timers_;
  int size_;
  bool can_spawn_ = false;
  bool is_forking_ = false;
  bool is_killed_ = false;
  bool is_given_up_ = false;
  bool output_read_ = false;
  bool owed_ = false;
  int running_ = 0;
  int ended_ = 0;
  int done_ = 0;
  int expected_ = 1;
  int quit_ = 0;
};

TEST(ShepherdAgent, RandomSequenceEndsInDoneOnce) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed);
    for (unsigned i = 0; i < seed % 60; ++i) model.step();
    model.finish();
    EXPECT_EQ(model.phase(), Phase::Done);
    EXPECT_EQ(model.done_count(), model.expected_count());
    model.end();
    model.end();
    EXPECT_EQ(model.quit_count(), 1);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace score::shepherd
