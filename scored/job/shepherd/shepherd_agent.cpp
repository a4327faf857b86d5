#include "scored/job/shepherd/shepherd_agent.hpp"

#include "base/exit_codes.hpp"
#include "base/model/model.hpp"

#include <signal.h>
#include <utility>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr auto kTasksAreEnding = "the tasks are ending";

}  // namespace

base::Duration ShepherdAgent::delay_of(Event timer) {
  if (timer == Event::KillAgain) return LeftoverKill::kAgain;
  // The server is in the tasks' cgroup, so a kill of the cgroup ends it and all tasks, in any
  // order.
  if (timer == Event::PmixMissed) return 200ms;
  if (timer == Event::DrainGraceOver)
    return 300ms;                                // for the pipes, after the processes are killed
  if (timer == Event::TakingOverdue) return 1s;  // the end waits this long for a slow front end
  return LostDaemon::kCheckPeriod;
}

ShepherdAgent::Actions ShepherdAgent::on(const Input& input, const Facts& facts,
                                         base::TimePoint now) {
  if (phase_ == Phase::Ended) return {};
  if (input.event <= Event::SpawnerFound) {
    on_preparation(input);
  } else if (input.event <= Event::RoomClosed) {
    on_tasks(input, facts, now);
  } else if (input.event >= Event::DaemonLost && input.event <= Event::End) {
    on_daemon(input, facts, now);
  } else {
    on_end(input, facts, now);
  }
  return std::exchange(actions_, {});
}

void ShepherdAgent::add(ActionKind what, int value, std::string text) {
  actions_.push_back({what, value, std::move(text)});
}

// ---- preparation

void ShepherdAgent::on_preparation(const Input& input) {
  const bool is_preparing = phase_ == Phase::Preparing;
  switch (input.event) {
    case Event::Planned:
      if (!awaits_plan()) return;
      job_ = input.job;
      awaits_volume_ = job_->has_volume;
      if (job_->can_spawn) room_ = Room::Open;
      return prepare_if_complete();
    case Event::PmixEnded:
      return start_timer(Event::PmixMissed);
    case Event::PmixFailed:
      if (is_preparing) return refuse(kExitError, input.text, false);
      if (phase_ < Phase::Draining) add(ActionKind::AbortJob, 0, input.text);
      return;
    case Event::VolumeReady:
      if (is_preparing && std::exchange(awaits_volume_, false)) prepare_if_complete();
      return;
    case Event::TasksPrepared:
      if (!is_preparing || !job_) return;
      phase_ = Phase::Prepared;
      if (group_ != 0) add(ActionKind::SendReady);
      return;
    case Event::Refused:
      if (is_preparing) refuse(input.value, input.text, input.may_retry);
      return;
    default:  // SpawnerFound
      if (std::exchange(group_, group_ != 0 ? group_ : input.value) != 0) return;
      if (phase_ >= Phase::Prepared) add(ActionKind::SendReady);
  }
}

void ShepherdAgent::refuse(int exit_code, const std::string& reason, bool may_retry) {
  add(ActionKind::SendRefused, exit_code, reason);
  actions_.back().may_retry = may_retry;
  quit();
}

void ShepherdAgent::prepare_if_complete() {
  if (!awaits_volume_) add(ActionKind::PrepareTasks);
}

// ---- tasks

void ShepherdAgent::on_tasks(const Input& input, const Facts& facts, base::TimePoint now) {
  const bool is_world_starting = phase_ == Phase::Running && room_ == Room::Busy;
  switch (input.event) {
    case Event::Start:
      if (phase_ != Phase::Prepared) return;
      phase_ = Phase::Starting;
      add(ActionKind::BeginTasks);
      if (job_->has_tasks) return;
      all_forked();  // a node of an allocation: it has a part of the volume but no task
      return drain(now);
    case Event::AllForked:
      if (phase_ == Phase::Starting) return all_forked();
      if (is_world_starting) end_world("");
      return;
    case Event::SpawnerFailed:
      if (phase_ == Phase::Starting) return fail_start(input.value != 0, input.text);
      add(ActionKind::LogSpawner, 0, input.text);
      return close_room();
    case Event::Signal:
      return signal(input.value);
    case Event::ChildEnded:
      if (phase_ >= Phase::Running && room_ != Room::Busy) add(ActionKind::Reap);
      if (leftover_kill_) add(ActionKind::KillLeftovers);
      return;
    case Event::TaskEnded:
      if (phase_ == Phase::Running && facts.all_ended && !has_room()) drain(now);
      return;
    case Event::Abort:
      if (!std::exchange(is_aborted_, true)) add(ActionKind::SendAbort);
      return;
    case Event::WorldRequested:
      if (room_ != Room::Open || phase_ < Phase::Starting) return;
      room_ = Room::Busy;
      if (phase_ == Phase::Running) add(ActionKind::ServeWorld);
      return;
    case Event::WorldReady:
      if (is_world_starting) add(ActionKind::ForkWorld);
      return;
    case Event::WorldFailed:
      if (is_world_starting) end_world(input.text);
      return;
    default:  // RoomClosed
      close_room();
  }
}

// Tasks that were forked early may already have requested a world.
void ShepherdAgent::all_forked() {
  phase_ = Phase::Running;
  for (const int number : std::exchange(early_signals_, {})) add(ActionKind::SignalTasks, number);
  add(ActionKind::TasksStarted);
  add(room_ == Room::Busy ? ActionKind::ServeWorld : ActionKind::Reap);
}

void ShepherdAgent::fail_start(bool is_gone, const std::string& reason) {
  phase_ = Phase::Running;
  add(ActionKind::FailStart, is_gone ? 1 : 0, reason);
  if (room_ == Room::Busy) end_world(reason);
}

void ShepherdAgent::signal(int number) {
  if (number == SIGKILL) add(ActionKind::AbandonVolume);
  if (number < 1 || number > SIGRTMAX || phase_ < Phase::Prepared) return;
  if (phase_ >= Phase::Running) {
    add(ActionKind::SignalTasks, number);
    if (number == SIGKILL) close_room();
    return;
  }
  if (number != SIGKILL) {
    early_signals_.insert(number);
    return;
  }
  // The spawner may be frozen, so it is killed instead of asked.
  is_killed_ = true;
  add(ActionKind::CloseSpawner);
  add(ActionKind::KillChildren);
  fail_start(true, "killed");
}

// ---- further worlds

void ShepherdAgent::end_world(const std::string& reason) {
  room_ = Room::Open;
  add(ActionKind::EndWorld, 0, reason);
  add(ActionKind::Reap);
}

// The rest of the room ends as if by tasks that did nothing.
void ShepherdAgent::close_room() {
  if (!has_room() || phase_ != Phase::Running) return;
  add(ActionKind::CloseSpawner);
  add(ActionKind::RefuseRoom, 0, kTasksAreEnding);
  if (room_ == Room::Busy) end_world(kTasksAreEnding);
  room_ = Room::Closed;
  add(ActionKind::GiveUpRoom);
}

// ---- the end

void ShepherdAgent::on_end(const Input& input, const Facts& facts, base::TimePoint now) {
  switch (input.event) {
    case Event::LeftoversKilled:
      if (!leftover_kill_) return;
      if (leftover_kill_->must_go_on(static_cast<std::size_t>(input.value), now)) {
        return start_timer(Event::KillAgain);
      }
      leftover_kill_.reset();
      add(ActionKind::RemoveLeftovers);  // before Done: after it this process may be killed
      start_timer(Event::DrainGraceOver);
      return finish_if_drained(facts, now);
    case Event::PmixMissed:
      if (phase_ < Phase::Draining) add(ActionKind::AbortJob, 0, "the PMIx server ended");
      return;
    case Event::KillAgain:
      if (!leftover_kill_) return;
      add(ActionKind::Reap);
      add(ActionKind::KillLeftovers);
      return;
    case Event::DrainGraceOver:
      if (phase_ == Phase::Draining) add(ActionKind::LimitOutput);
      return;
    case Event::DaemonCheck: {
      // Other nodes may still use this node's part of a volume.
      const bool may_go = has_drained(facts) && !job_->has_volume;
      if (!lost_daemon_ || !lost_daemon_->check(input.value != 0, may_go, now)) {
        return start_timer(Event::DaemonCheck);
      }
      return quit();
    }
    case Event::TakingOverdue:
      if (taking_ == Taking::Awaited) taking_ = Taking::Overdue;
      return finish_if_drained(facts, now);
    default:  // OutputMoved
      finish_if_drained(facts, now);
  }
}

void ShepherdAgent::drain(base::TimePoint now) {
  phase_ = Phase::Draining;
  leftover_kill_.emplace(now);
  add(ActionKind::CloseInput, job_->has_tasks && !is_aborted_ && !is_killed_ ? 1 : 0);
  add(ActionKind::KillLeftovers);
}

// The node daemon forgets the attempt after Done, so output that only the head or the node daemon
// has is lost if that daemon dies. For this reason Done waits until the front end has the output.
// It waits a second at most, or after a resume as long as necessary, because the head may die again
// before the front end has reconnected.
void ShepherdAgent::finish_if_drained(const Facts& facts, base::TimePoint now) {
  if (phase_ != Phase::Draining || !has_drained(facts)) return;
  if (facts.output_owed && taking_ != Taking::Overdue) {
    if (taking_ != Taking::Idle) return;
    taking_ = Taking::Awaited;
    return start_timer(Event::TakingOverdue);
  }
  phase_ = Phase::Done;
  add(ActionKind::SendDone);
  lost_daemon_.emplace(now);
}

void ShepherdAgent::quit() {
  phase_ = Phase::Ended;
  add(ActionKind::Quit);
}

// ---- the node daemon

void ShepherdAgent::on_daemon(const Input& input, const Facts& facts, base::TimePoint now) {
  if (input.event == Event::DaemonLost) {
    lost_daemon_.emplace(now);
    return start_timer(Event::DaemonCheck);
  }
  if (input.event == Event::End) return quit();
  taking_ = Taking::Unlimited;
  if (phase_ == Phase::Done && facts.output_owed) phase_ = Phase::Draining;
  if (input.event == Event::OutputRefused) return;
  auto reported = base::AttemptPhase::Preparing;
  if (phase_ == Phase::Prepared) reported = base::AttemptPhase::Prepared;
  if (phase_ > Phase::Prepared) reported = base::AttemptPhase::Running;
  if (phase_ == Phase::Done) reported = base::AttemptPhase::Exited;
  add(ActionKind::SendReport, static_cast<int>(reported));
  // A report without pids does not mean that the tasks were started, because this node may not have
  // any yet.
  const bool has_none = room_ != Room::None && input.value == 0;
  if (phase_ == Phase::Running && has_none) add(ActionKind::SendStarted);
  if (phase_ == Phase::Done) add(ActionKind::SendDone);
}

}  // namespace score::shepherd
