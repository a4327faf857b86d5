#pragma once
// Decides what a shepherd does, from Prepare to the end. This class is pure: the shell
// (shepherd.hpp) reports events and carries out actions.
//
// The shell carries out the actions of an event in order. An event that arises meanwhile is
// reported and its actions are carried out at once, before the remaining ones. Messages that mean
// the same in every phase (input, fences, window updates, names of peers) do not pass through here.

#include "base/time.hpp"
#include "scored/job/shepherd/job_end.hpp"

#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

class ShepherdAgent {
 public:
  enum class Phase {
    Preparing,  // no plan yet, or a part of it is missing
    Prepared,   // waits for Start
    Starting,   // the spawner forks
    Running,    // every task has a process, or never will
    Draining,   // every task ended; leftovers are killed, output is sent
    Done,       // everything is reported; waits for End
    Ended,      // the loop ends; nothing is handled any more
  };

  enum class Event {
    // ---- preparation
    Planned,        // the plan was accepted; `job` describes it
    PmixFailed,     // the PMIx server cannot start. text: why
    PmixEnded,      // it is gone
    VolumeReady,    // mounted
    TasksPrepared,  // PrepareTasks succeeded
    Refused,        // the job cannot start here. value: exit code; text: why
    SpawnerFound,   // value: its pid
    // ---- tasks
    Start,
    AllForked,      // of the job or of a further world
    SpawnerFailed,  // value: 1 if it ended, 0 for any other failure; text: why
    Signal,         // value: its number
    ChildEnded,
    TaskEnded,
    Abort,  // the job must end; the shell has the first reason
    // ---- further worlds: tasks that programs start
    WorldRequested,
    WorldReady,   // its servers are
    WorldFailed,  // text: why
    RoomClosed,   // no program can start tasks any more
    // ---- the end
    LeftoversKilled,  // value: how many processes were left
    OutputMoved,      // was read or taken
    // ---- the node daemon
    DaemonLost,     // and at the beginning, when there was none
    OutputRefused,  // by the head; the shell sends it again when it is asked to
    Resume,         // value: how many tasks have or had a process
    End,            // and SIGTERM
    // ---- timers: see delay_of()
    PmixMissed,  // tasks outlive the PMIx server
    KillAgain,
    DrainGraceOver,
    TakingOverdue,
    DaemonCheck,  // only without a daemon. value: 1 if none can connect any more
  };

  struct Job {
    bool has_tasks = true;  // on this node
    bool can_spawn = false;
    bool has_volume = false;
  };

  struct Input {
    Event event{};
    int value = 0;
    std::string text = {};
    Job job = {};
    bool may_retry = false;  // of Refused: the job is not the cause
  };

  // Facts holds what the shell sees at the time of the event.
  struct Facts {
    bool all_ended = false;    // each task has ended or never got a process
    bool output_read = false;  // all of it
    bool output_owed = false;  // output was sent that the front end has not taken
  };

  enum class ActionKind {
    PrepareTasks,  // report TasksPrepared or Refused
    SendReady,
    SendRefused,  // value: exit code; text: why
    BeginTasks,
    TasksStarted,  // every task has a process: report it, complete the input
    FailStart,     // end tasks without a process. value: 1 if the spawner ended; text: why
    SignalTasks,   // value: signal
    AbandonVolume,
    CloseSpawner,
    KillChildren,
    LogSpawner,  // text: why it ended
    Reap,
    AbortJob,   // text: why; report Abort
    SendAbort,  // the first one
    ServeWorld,
    ForkWorld,
    EndWorld,    // its start is over. text: why it failed; empty: it succeeded
    RefuseRoom,  // refuse further worlds. text: why
    GiveUpRoom,  // end tasks without a process as if they did nothing; report TaskEnded
    CloseInput,  // value: 1 if the tasks ended by themselves
    KillLeftovers,
    RemoveLeftovers,
    LimitOutput,  // to what is in the pipes now; report OutputMoved
    SendReport,   // value: base::AttemptPhase; and all that the daemon may have missed
    SendStarted,
    SendDone,
    StartTimer,  // value: the event that it reports; replaces the earlier timer of that event
    Quit,
  };

  struct Action {
    ActionKind what{};
    int value = 0;
    std::string text = {};
    bool may_retry = false;  // of SendRefused

    friend bool operator==(const Action&, const Action&) = default;
  };

  using Actions = std::vector<Action>;

  Actions on(const Input& input, const Facts& facts, base::TimePoint now);

  static base::Duration delay_of(Event timer);

  [[nodiscard]] Phase phase() const { return phase_; }

  // Returns the spawner's pid, which is the tasks' process group; 0: not known yet.
  [[nodiscard]] pid_t group() const { return group_; }

  [[nodiscard]] bool awaits_plan() const { return phase_ == Phase::Preparing && !job_; }

  // Returns true if a task may still read input.
  [[nodiscard]] bool takes_input() const { return job_ && phase_ < Phase::Draining; }

  // Returns true if programs may start tasks and this node's first tasks have started.
  [[nodiscard]] bool takes_worlds() const {
    return room_ != Room::None && phase_ >= Phase::Running;
  }

 private:
  // The room for tasks that programs start. Programs of any node may start them, so this node takes
  // part until no program can.
  enum class Room { None, Open, Busy, Closed };             // Busy: a world is being started
  enum class Taking { Idle, Awaited, Overdue, Unlimited };  // of output by the front end

  void on_preparation(const Input& input);
  void on_tasks(const Input& input, const Facts& facts, base::TimePoint now);
  void on_end(const Input& input, const Facts& facts, base::TimePoint now);
  void on_daemon(const Input& input, const Facts& facts, base::TimePoint now);

  void add(ActionKind what, int value = 0, std::string text = {});

  void start_timer(Event timer) { add(ActionKind::StartTimer, static_cast<int>(timer)); }

  void refuse(int exit_code, const std::string& reason, bool may_retry);
  void prepare_if_complete();
  void all_forked();
  void fail_start(bool is_gone, const std::string& reason);
  void signal(int number);
  void end_world(const std::string& reason);
  void close_room();
  void drain(base::TimePoint now);
  void finish_if_drained(const Facts& facts, base::TimePoint now);
  void quit();

  [[nodiscard]] bool has_room() const { return room_ == Room::Open || room_ == Room::Busy; }

  // Returns true if no process is left and all output was read.
  [[nodiscard]] bool has_drained(const Facts& facts) const {
    return phase_ >= Phase::Draining && !leftover_kill_ && facts.output_read;
  }

  Phase phase_ = Phase::Preparing;
  pid_t group_ = 0;
  std::optional<Job> job_;
  bool awaits_volume_ = false;
  Room room_ = Room::None;
  std::set<int> early_signals_;  // for tasks that the spawner has not forked yet
  bool is_killed_ = false;       // before all tasks were forked
  bool is_aborted_ = false;
  std::optional<LeftoverKill> leftover_kill_;  // while leftovers are killed
  Taking taking_ = Taking::Idle;
  std::optional<LostDaemon> lost_daemon_;
  Actions actions_;
};

}  // namespace score::shepherd
