// Every message and report becomes an event of one attempt; attempt_phase.hpp defines the
// reactions. Repeated messages repeat their answer, so a head that restarted or lost its link may
// ask again.
//
// A timetable is followed at cluster times. When the clock estimate moves by more than
// replan_above, the same timetable is converted to a plan again. A timetable of an earlier
// connection is not: the head, and with it the meaning of cluster time, may have changed.
#include "gang/node/node_agent.hpp"

#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/overloaded.hpp"
#include "gang/job/epochs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace score::gang {

namespace {

constexpr int kKillSignal = 9;

base::AttemptPhase reported(Phase phase) {
  switch (phase) {
    case Phase::Absent:
    case Phase::Preparing:
      return base::AttemptPhase::Preparing;
    case Phase::Prepared:
      return base::AttemptPhase::Prepared;
    case Phase::Running:
      return base::AttemptPhase::Running;
    case Phase::Exited:
      return base::AttemptPhase::Exited;
  }
  return base::AttemptPhase::Preparing;
}

Phase from_report(base::AttemptPhase phase) {
  switch (phase) {
    case base::AttemptPhase::Preparing:
      return Phase::Preparing;
    case base::AttemptPhase::Prepared:
      return Phase::Prepared;
    case base::AttemptPhase::Running:
      return Phase::Running;
    case base::AttemptPhase::Exited:
      return Phase::Exited;
  }
  return Phase::Preparing;
}

// Returns the ranks of this node, ascending.
std::vector<std::uint32_t> local_ranks(const base::PlacedTasks& placed) {
  return base::ranks_of_node(placed.tasks_on_node, placed.node_index, placed.distribution);
}

bool well_formed(const base::PlacedTasks& placed) {
  if (placed.node_index >= placed.tasks_on_node.size()) return false;
  const auto tasks =
      std::accumulate(placed.tasks_on_node.begin(), placed.tasks_on_node.end(), std::uint64_t{0});
  return tasks <= base::limits::kMaxTasksPerJob;
}

std::vector<base::TaskExit> values(const std::map<base::Rank, base::TaskExit>& exits) {
  std::vector<base::TaskExit> out;
  for (const auto& [rank, exit] : exits) out.push_back(exit);
  return out;
}

}  // namespace

NodeAgent::NodeAgent(NodeAgentConfig config) : config_(std::move(config)) {}

void NodeAgent::send(base::NodeToHead message, NodeActions& out) const {
  if (connected_) out.push_back(SendToHead{std::move(message)});
}

// Sets and returns the phase after the event. Returns nullopt if the event is not possible in this
// phase.
std::optional<Phase> NodeAgent::step(AttemptId id, AttemptEvent event) {
  const auto found = attempts_.find(id);
  const Phase from = found == attempts_.end() ? Phase::Absent : found->second.phase;
  const std::optional<Phase> to = next_phase(from, event);
  if (!to) {
    ++unexpected_count_;
  } else if (found != attempts_.end() && *to != Phase::Absent) {
    found->second.phase = *to;
  }
  return to;
}

// ---- the link ---------------------------------------------------------------------------------

std::vector<base::AttemptReport> NodeAgent::attempts() const {
  std::vector<base::AttemptReport> out;
  for (const auto& [id, attempt] : attempts_) {
    out.push_back({id, reported(attempt.phase), values(attempt.exits), attempt.reason,
                   attempt.filled, attempt.oom_kills, attempt.usage});
  }
  return out;
}

NodeActions NodeAgent::on_connected(TimePoint) {
  connected_ = true;
  timetable_.reset();
  following_ = false;
  clock_.restart();
  NodeActions out;
  send(base::NodeHello{config_.info, attempts(), greatest_epoch_}, out);
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.phase == Phase::Exited) {
      send(exited_message(id), out);
    } else if (attempt.abort) {
      send(*attempt.abort, out);
    }
    if (attempt.phase == Phase::Running && !attempt.placed.cores.empty()) {
      send(base::ActivityChanged{id, attempt.activity}, out);
    }
    if (attempt.phase == Phase::Running && attempt.parked) send(*attempt.parked, out);
  }
  return out;
}

void NodeAgent::set_head(Epoch incarnation) {
  head_ = incarnation;
  if (!is_epoch_up_to(head_, greatest_epoch_)) greatest_epoch_ = Epoch{0};
}

NodeActions NodeAgent::on_disconnected(TimePoint) {
  connected_ = false;
  return {};
}

NodeActions NodeAgent::on_head(const base::HeadToNode& message, TimePoint now) {
  NodeActions out;
  std::visit(Overloaded{
                 [&](const base::PrepareTasks& m) { prepare(m, out); },
                 [&](const base::StartTasks& m) { start(m.attempt, out); },
                 [&](const base::SignalTasks& m) { signal(m, out); },
                 [&](const base::KillTasks& m) { kill(m.attempt, out); },
                 [&](const base::ForgetTasks& m) { forget(m.attempt, out); },
                 [&](const base::SetTimetable& m) { set_timetable(m.timetable, now, out); },
                 [&](const base::MetAll& m) { out.push_back(EndMeeting{m}); },
                 [&](const base::ParkTasks& m) { park(m, out); },
             },
             message);
  return out;
}

// ---- what the head asks -----------------------------------------------------------------------

void NodeAgent::prepare(const base::PrepareTasks& message, NodeActions& out) {
  const AttemptId id = message.placed.attempt;
  if (!well_formed(message.placed)) {
    ++unexpected_count_;
    send(base::Refused{id, kExitError, "invalid placement"}, out);
    return;
  }
  const bool is_new = !attempts_.contains(id);
  const std::optional<Phase> phase = step(id, AttemptEvent::Prepare);
  if (!phase) return;
  if (is_new) {
    attempts_[id].placed = message.placed;
    out.push_back(LaunchShepherd{message.placed, message.spec});
  } else if (*phase == Phase::Prepared) {
    send(base::Prepared{id}, out);
  } else if (*phase == Phase::Exited) {
    send(exited_message(id), out);
  }
}

void NodeAgent::start(AttemptId id, NodeActions& out) {
  const auto found = attempts_.find(id);
  const bool again = found != attempts_.end() && found->second.phase == Phase::Running;
  const std::optional<Phase> phase = step(id, AttemptEvent::Start);
  if (!phase) return;
  if (*phase != Phase::Running) {
    send(exited_message(id), out);
  } else if (!again) {
    out.push_back(StartShepherd{id});
  } else if (found->second.started) {
    send(base::Started{id}, out);
  }
}

void NodeAgent::signal(const base::SignalTasks& message, NodeActions& out) {
  if (step(message.attempt, AttemptEvent::Signal) == Phase::Running) {
    out.push_back(SignalShepherd{message.attempt, message.signal});
  }
}

void NodeAgent::park(const base::ParkTasks& message, NodeActions& out) {
  const auto found = attempts_.find(message.attempt);
  if (found == attempts_.end() || found->second.phase != Phase::Running) return;
  out.push_back(ParkAttempt{message});
}

NodeActions NodeAgent::on_parked(const base::ParkReport& report) {
  NodeActions out;
  const auto found = attempts_.find(report.attempt);
  if (found == attempts_.end() || found->second.phase != Phase::Running) return out;
  found->second.parked.reset();
  if (report.out && report.reason.empty()) found->second.parked = report;
  send(report, out);
  return out;
}

void NodeAgent::kill(AttemptId id, NodeActions& out) {
  const std::optional<Phase> phase = step(id, AttemptEvent::Kill);
  if (!phase) return;
  if (*phase == Phase::Absent || *phase == Phase::Exited) {
    send(exited_message(id), out);
    return;
  }
  attempts_[id].killed = true;
  out.push_back(KillAttempt{id});
}

void NodeAgent::forget(AttemptId id, NodeActions& out) {
  if (step(id, AttemptEvent::Forget) != Phase::Absent || attempts_.erase(id) == 0) return;
  out.push_back(RemoveAttempt{id});
}

void NodeAgent::set_filled(AttemptId id, Duration filled) {
  const auto found = attempts_.find(id);
  if (found != attempts_.end() && found->second.phase != Phase::Exited)
    found->second.filled = filled;
}

void NodeAgent::note_oom_kills(AttemptId id, std::uint32_t kills, std::string reason) {
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.phase == Phase::Exited || kills == 0) return;
  found->second.oom_kills = kills;
  if (found->second.reason.empty()) found->second.reason = std::move(reason);
}

NodeActions NodeAgent::end_attempt(AttemptId id, std::string reason, TimePoint) {
  NodeActions out;
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || found->second.phase == Phase::Exited) return out;
  if (found->second.reason.empty()) found->second.reason = std::move(reason);
  kill(id, out);
  return out;
}

namespace {

std::string end_of_shepherd(const ShepherdGone& gone) {
  if (gone.signal == 0) return "its shepherd died";
  return fmt::format("its shepherd was killed by signal {}", gone.signal);
}

}  // namespace

// ---- what shepherds report --------------------------------------------------------------------

NodeActions NodeAgent::on_shepherd(AttemptId id, const ShepherdEvent& event, TimePoint now) {
  NodeActions out;
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) {
    ++unexpected_count_;
    return out;
  }
  Attempt& attempt = found->second;
  std::visit(
      Overloaded{
          [&](const ShepherdReady&) {
            if (step(id, AttemptEvent::Ready)) send(base::Prepared{id}, out);
          },
          [&](const ShepherdRefused& e) { refuse(id, e, out); },
          [&](const ShepherdStarted&) {
            if (attempt.started) return;  // repeated, with tasks that programs have started
            if (!step(id, AttemptEvent::Started)) return;
            attempt.started = true;
            send(base::Started{id}, out);
          },
          [&](const ShepherdTaskExited& e) {
            if (step(id, AttemptEvent::TaskEnd))
              task_ended(attempt, in_cluster_time(e.exit, now), out);
          },
          [&](const ShepherdAbort& e) {
            if (!step(id, AttemptEvent::Abort) || attempt.abort) return;
            attempt.abort = abort_of(id, e, now);
            send(*attempt.abort, out);
          },
          [&](const ShepherdDone& e) {
            const bool is_repeated = attempt.phase == Phase::Exited;
            if (!step(id, AttemptEvent::Done) || is_repeated) return;
            attempt.usage = e.usage;
            finish(id, out);
            out.push_back(RetireAttempt{id});
          },
          [&](const ShepherdGone& e) {
            if (attempt.phase == Phase::Exited) return out.push_back(RemoveAttempt{id});
            out.push_back(KillAttempt{id});
            if (attempt.phase == Phase::Preparing && !attempt.killed) {
              return refuse(id, {kExitError, "the shepherd died before it was ready", true}, out);
            }
            if (!attempt.killed && attempt.reason.empty()) attempt.reason = end_of_shepherd(e);
            // Its last reports may be lost, so its tasks count as begun.
            attempt.started |= attempt.phase == Phase::Running;
            if (!step(id, AttemptEvent::Gone)) return;
            attempt.usage = e.usage;
            finish(id, out);
            out.push_back(RemoveAttempt{id});
          },
      },
      event);
  return out;
}

// Returns 0 (not known) if the time cannot be compared with times of other nodes, or not yet.
TimePoint NodeAgent::in_cluster_time(TimePoint node, TimePoint now) const {
  const bool is_known = node > TimePoint() && node <= now && clock_.synchronised();
  return is_known ? clock_.to_cluster(node) : TimePoint();
}

base::TaskExit NodeAgent::in_cluster_time(base::TaskExit exit, TimePoint now) const {
  exit.ended = in_cluster_time(exit.ended, now);
  return exit;
}

base::AbortRequested NodeAgent::abort_of(AttemptId id, const ShepherdAbort& abort,
                                         TimePoint now) const {
  return {id, abort.rank, abort.code, abort.message, in_cluster_time(abort.asked, now), abort.left};
}

void NodeAgent::refuse(AttemptId id, const ShepherdRefused& why, NodeActions& out) {
  if (!step(id, AttemptEvent::Refuse)) return;
  attempts_.erase(id);
  out.push_back(RemoveAttempt{id});
  send(base::Refused{id, why.exit_code, why.reason, why.may_retry}, out);
}

void NodeAgent::task_ended(Attempt& attempt, const base::TaskExit& exit, NodeActions& out) {
  const auto ranks = local_ranks(attempt.placed);
  const bool known = std::ranges::binary_search(ranks, exit.rank.value());
  if (!known || !attempt.exits.emplace(exit.rank, exit).second) {
    ++unexpected_count_;
    return;
  }
  // Killed tasks are reported only with Exited, after its reason.
  if (!attempt.killed) send(base::TaskEnded{attempt.placed.attempt, exit}, out);
}

// The attempt has just become Exited. Started tasks whose end is unknown were killed.
void NodeAgent::finish(AttemptId id, NodeActions& out) {
  Attempt& attempt = attempts_[id];
  const bool ran = attempt.started || !attempt.exits.empty();
  for (const std::uint32_t rank : local_ranks(attempt.placed)) {
    if (!ran) break;
    attempt.exits.try_emplace(base::Rank{rank}, base::TaskExit{base::Rank{rank}, 0, kKillSignal});
  }
  send(exited_message(id), out);
}

base::Exited NodeAgent::exited_message(AttemptId id) const {
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return {id, {}, {}};
  const Attempt& attempt = found->second;
  return {id,           values(attempt.exits), attempt.reason, attempt.filled, attempt.oom_kills,
          attempt.usage};
}

NodeActions NodeAgent::adopt(const base::PlacedTasks& placed, const base::AttemptReport& report,
                             bool has_begun, TimePoint) {
  if (!well_formed(placed)) {
    ++unexpected_count_;
    NodeActions out;
    out.push_back(KillAttempt{placed.attempt});
    out.push_back(RemoveAttempt{placed.attempt});
    return out;
  }
  Attempt& attempt = attempts_[placed.attempt];
  attempt.placed = placed;
  attempt.phase = from_report(report.phase);
  attempt.started = has_begun;
  attempt.reason = report.reason;
  attempt.oom_kills = report.oom_kills;
  attempt.usage = report.usage;
  for (base::TaskExit exit : report.exits) {
    exit.ended = {};  // the clock is not synchronised yet
    attempt.exits.emplace(exit.rank, exit);
  }
  NodeActions out;
  if (attempt.phase == Phase::Exited) out.push_back(RetireAttempt{placed.attempt});
  return out;
}

// ---- idleness ---------------------------------------------------------------------------------

NodeActions NodeAgent::on_activity(AttemptId id, const base::Activity& activity, TimePoint) {
  NodeActions out;
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return out;
  // Before the attempt runs a change is not reported; repeat_activities() does so later.
  if (std::exchange(found->second.activity, activity) == activity) return out;
  if (found->second.phase == Phase::Running) send(base::ActivityChanged{id, activity}, out);
  return out;
}

NodeActions NodeAgent::on_meeting(const base::MeetingReached& reached) {
  NodeActions out;
  if (attempts_.contains(reached.attempt)) send(reached, out);
  return out;
}

NodeActions NodeAgent::repeat_activities(TimePoint) {
  NodeActions out;
  const auto has = [](const std::vector<AttemptId>& list, AttemptId id) {
    return std::binary_search(list.begin(), list.end(), id);
  };
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.phase != Phase::Running) continue;
    const bool fits = attempt.activity.idle ? !has(plan_.managed, id) : !has(plan_.background, id);
    if (!fits) send(base::ActivityChanged{id, attempt.activity}, out);
  }
  return out;
}

// ---- timetable and clock ----------------------------------------------------------------------

void NodeAgent::set_timetable(const base::Timetable& timetable, TimePoint now, NodeActions& out) {
  if (timetable.epoch <= greatest_epoch_) return;
  // A node that was away may have missed any number of epochs.
  const bool is_step = !timetable_ || is_epoch_step(timetable_->epoch, timetable.epoch);
  if (!is_step || !is_epoch_up_to(head_, timetable.epoch)) {
    ++unexpected_count_;
    return send(base::TimetableApplied{timetable.epoch, Duration::max()}, out);
  }
  greatest_epoch_ = timetable.epoch;
  if (!make_plan(timetable, now)) {
    ++unexpected_count_;
    send(base::TimetableApplied{timetable.epoch, Duration::max()}, out);
    return;
  }
  timetable_ = timetable;
  following_ = false;
  if (clock_.synchronised()) follow(now, out);
}

// Converts timetable_ to a plan if it has none yet or the clock estimate has moved.
void NodeAgent::follow(TimePoint now, NodeActions& out) {
  const TimePoint start = now + (timetable_->start - clock_.to_cluster(now));
  if (following_ && std::chrono::abs(start - plan_.start) <= config_.replan_above) return;
  const bool is_new = !std::exchange(following_, true);
  plan_ = *make_plan(*timetable_, start);
  out.push_back(FollowPlan{plan_});
  if (is_new && now - start > config_.late_after) {
    ++late_count_;
    send(base::TimetableApplied{timetable_->epoch, now - start}, out);
  }
}

// The timetable changes too, because a step of the clock makes the plan again.
NodeActions NodeAgent::release_displaced(bool hears_head, TimePoint now) {
  NodeActions out;
  if (hears_head) heard_at_ = now;
  if (plan_.displaced.empty() || now - heard_at_ < kHeadless) return out;
  const auto is_here = [&](AttemptId id) {
    const auto found = attempts_.find(id);
    return found != attempts_.end() && found->second.phase != Phase::Exited;
  };
  for (const base::Segment& segment : plan_.segments) {
    if (std::ranges::any_of(segment.jobs, is_here)) return out;
  }
  const auto displaced = std::exchange(plan_.displaced, {});
  const auto release = [&](std::vector<AttemptId>& managed) {
    std::erase_if(managed, [&](AttemptId id) { return std::ranges::binary_search(displaced, id); });
  };
  release(plan_.managed);
  if (timetable_) {
    release(timetable_->managed);
    timetable_->displaced.clear();
  }
  out.push_back(FollowPlan{plan_});
  return out;
}

NodeActions NodeAgent::on_clock(const ClockSample& sample, TimePoint now) {
  NodeActions out;
  if (clock_.add(sample) && timetable_) follow(now, out);
  return out;
}

}  // namespace score::gang
