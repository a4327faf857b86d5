// A job's launch and end. Launch is all or nothing: every node prepares; when all have, the job
// enters the timetable and all are told to start; one refusal ends it everywhere. An end is decided
// once, by the first cause; then every node is told to kill, and the job is final when nothing of
// it is left on any node.
// It is tested by cluster_test.cpp.
#include "base/assert.hpp"
#include "base/exit_codes.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace score::gang {

namespace {

constexpr int kSignalBase = 128;

int code_of(const base::TaskExit& exit) {
  return exit.signal != 0 ? kSignalBase + exit.signal : exit.code;
}

// Signals that nobody gives himself because others have gone.
bool is_crash(int signal) {
  constexpr std::array kCrashes{SIGKILL, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  return std::ranges::find(kCrashes, signal) != kCrashes.end();
}

std::string seconds(Duration d) {
  return fmt::format("{:.1f}s", std::chrono::duration<double>(d).count());
}

}  // namespace

std::string Cluster::Impl::name_of(const Job& job, std::size_t member) const {
  return nodes[job.cells.nodes[member]].info.name;
}

std::optional<std::size_t> Cluster::Impl::member_of(const Job& job, NodeIndex node) {
  const auto& list = job.cells.nodes;
  const auto found = std::lower_bound(list.begin(), list.end(), node);
  if (!job.placed || found == list.end() || *found != node) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin());
}

void Cluster::Impl::change(Job& job, JobEvent event, Actions& out) {
  const auto next = next_state(job.state, event);
  SCORE_ASSERT(next, "job={} state={} event={}", job.id, to_string(job.state), to_string(event));
  job.state = *next;
  note_state(job);
  out.push_back(JobChanged{job.id});
}

void Cluster::Impl::note_state(const Job& job) {
  const auto keep = [&](std::set<JobId>& set, bool member) {
    dirty |= member ? set.insert(job.id).second : set.erase(job.id) > 0;
  };
  keep(active_, job.is_active());
  keep(managed_, job.is_managed());
}

// ---- launch -----------------------------------------------------------------------------------

void Cluster::Impl::launch(Job& job, TimePoint now, Actions& out) {
  const std::size_t count = job.cells.nodes.size();
  ++job.attempts;
  job.members.assign(count, Member::Asked);
  job.to_begin.clear();
  forget_activity(job);
  job.parts.assign(count, {});
  job.gatherings = {};
  job.waited_for = job.remaining = static_cast<std::uint32_t>(count);
  change(job, JobEvent::Place, out);
  set_deadline(job, DeadlineKind::Launch, now + config.launch_deadline);
  for (std::size_t member = 0; member < count; ++member) prepare_on(job, member, out);
}

void Cluster::Impl::prepare_on(const Job& job, std::size_t member, Actions& out) const {
  base::PrepareTasks message;
  message.placed.attempt = job.attempt();
  message.placed.user = job.user;
  message.placed.node_index = static_cast<std::uint32_t>(member);
  message.placed.tasks_on_node = job.tasks_on_node;
  message.placed.distribution = job.request.distribution;
  message.placed.restarts = job.restarts;
  message.placed.cores = job.cells.cores[member];
  message.placed.memory = job.request.memory_per_node;
  send(job.cells.nodes[member], std::move(message), out);
}

void Cluster::Impl::prepared(Job& job, std::size_t member, TimePoint now, Actions& out) {
  if (job.state != JobState::Launching || job.members[member] != Member::Asked) return;
  job.members[member] = Member::Prepared;
  if (--job.waited_for > 0) return;
  job.started = now;
  ++counters.jobs_started;
  change(job, JobEvent::AllPrepared, out);
  if (job.request.wall_limit > Duration::zero()) {
    set_deadline(job, DeadlineKind::Wall, now + job.request.wall_limit);
  }
  if (job.overlay()) return start_on_all(job, now, out);
  start_due_.insert(job.id);
}

void Cluster::Impl::start_on(Job& job, std::size_t member, TimePoint now, Actions& out) {
  job.members[member] = Member::Started;
  job.to_begin.insert(member);
  job.begin_from = scheduled(job, now);
  set_deadline(job, DeadlineKind::Begin, now + config.launch_deadline);
  send(job.cells.nodes[member], base::StartTasks{job.attempt()}, out);
}

void Cluster::Impl::start_on_all(Job& job, TimePoint now, Actions& out) {
  for (std::size_t m = 0; m < job.members.size(); ++m) {
    if (job.members[m] != Member::Gone) start_on(job, m, now, out);
  }
}

// What the node has said of its share so far was about tasks that did not exist yet; if it is idle
// all the same, that is said again.
void Cluster::Impl::began(Job& job, std::size_t member, TimePoint now, Actions& out) {
  if (job.to_begin.erase(member) == 0) return;
  job.parts[member] = {};
  if (!job.to_begin.empty()) return;
  if (!job.overlay()) judge_activity(job, now, out);
}

// ---- what nodes say ---------------------------------------------------------------------------

namespace {

std::optional<AttemptId> attempt_of(const base::NodeToHead& message) {
  return std::visit(
      [](const auto& m) -> std::optional<AttemptId> {
        if constexpr (requires { m.attempt; }) {
          return m.attempt;
        } else {
          return std::nullopt;
        }
      },
      message);
}

bool means_gone(const base::NodeToHead& message) {
  return std::holds_alternative<base::Exited>(message) ||
         std::holds_alternative<base::Refused>(message);
}

}  // namespace

void Cluster::Impl::said(NodeId id, const base::NodeToHead& message, TimePoint now, Actions& out) {
  const auto index = find_node(id);
  if (!index || !nodes[*index].connected) {
    ++counters.stale_reports;
    return;
  }
  if (detector_.heard(id, now)) refresh_state(nodes[*index], out);
  const auto attempt = attempt_of(message);
  if (!attempt) {
    if (std::holds_alternative<base::TimetableApplied>(message)) ++counters.late_epochs;
    return;
  }
  Job* job = find_job(base::job_of(*attempt));
  const auto member = job != nullptr ? member_of(*job, *index) : std::nullopt;
  if (member && job->attempt() == *attempt && job->members[*member] != Member::Gone) {
    return said_of_job(*job, *member, message, now, out);
  }
  // Of an attempt that is not, or no more, ours.
  const bool was_zombie = nodes[*index].zombies.contains(*attempt);
  if (!was_zombie) ++counters.stale_reports;
  if (means_gone(message)) {
    resurrect(*index, *attempt, out);
  } else if (!was_zombie) {
    bury(*index, *attempt, out);
  }
}

void Cluster::Impl::said_of_job(Job& job, std::size_t member, const base::NodeToHead& message,
                                TimePoint now, Actions& out) {
  if (std::holds_alternative<base::Prepared>(message)) return prepared(job, member, now, out);
  if (const auto* m = std::get_if<base::Refused>(&message)) {
    return refused(job, member, *m, now, out);
  }
  if (const auto* m = std::get_if<base::Exited>(&message)) {
    return exited(job, member, *m, now, out);
  }
  if (job.members[member] != Member::Started) {  // before any task was started there
    if (!std::holds_alternative<base::Started>(message)) ++counters.stale_reports;
    return;
  }
  if (std::holds_alternative<base::Started>(message)) return began(job, member, now, out);
  if (const auto* m = std::get_if<base::TaskEnded>(&message)) {
    auto exit = m->exit;
    exit.was_ending = true;  // else it came with Exited
    if (record_exit(job, member, exit)) judge_exit(job, member, exit, now, out);
  } else if (const auto* c = std::get_if<base::ActivityChanged>(&message)) {
    activity_changed(job, member, c->activity, now, out);
  } else if (const auto* r = std::get_if<base::MeetingReached>(&message)) {
    meeting_reached(job, member, *r, out);
  } else if (const auto* a = std::get_if<base::AbortRequested>(&message)) {
    const int code = a->code >= 1 && a->code <= 255 ? a->code : 1;
    blame(job, {abort_of(job, member, *a), code, a->asked, a->left}, now, out);
  }
}

// False: impossible or known already.
bool Cluster::Impl::record_exit(Job& job, std::size_t member, const base::TaskExit& exit) {
  const std::uint32_t rank = exit.rank.value();
  const bool is_its = rank < job.node_of_rank.size() && job.node_of_rank[rank] == member;
  const bool sane =
      is_its && exit.code >= 0 && exit.code <= 255 && exit.signal >= 0 && exit.signal <= 64;
  if (!sane) ++counters.stale_reports;
  if (!sane || job.exit_known[rank]) return false;
  job.exit_known[rank] = true;
  job.exits[rank] = exit;
  // Once the end is decided, a task that a signal ends was ended by us.
  const bool counts = !job.ending || (*job.ending == JobState::Failed && exit.signal == 0);
  if (counts) job.exit_code = std::max(job.exit_code, code_of(exit));
  return true;
}

std::string Cluster::Impl::abort_of(const Job& job, std::size_t member,
                                    const base::AbortRequested& abort) const {
  return fmt::format("rank {} on {} aborted with {}{}{}", abort.rank, name_of(job, member),
                     abort.code, abort.message.empty() ? "" : ": ", abort.message);
}

std::string Cluster::Impl::failure_of(const Job& job, std::size_t member,
                                      const base::TaskExit& exit) const {
  const std::string how = exit.signal != 0 ? fmt::format("was ended by signal {}", exit.signal)
                                           : fmt::format("exited with {}", exit.code);
  return fmt::format("rank {} on {} {}", exit.rank, name_of(job, member), how);
}

// Of a job that kept going: the lowest rank that failed, and how many more.
std::string Cluster::Impl::failures_of(const Job& job) const {
  std::string text;
  std::size_t others = 0;
  for (const base::TaskExit& exit : job.exits) {
    if (code_of(exit) == 0) continue;
    if (!text.empty()) {
      ++others;
      continue;
    }
    text = failure_of(job, job.node_of_rank.at(exit.rank.value()), exit);
  }
  if (others > 0) text += fmt::format(", and {} more failed", others);
  return text;
}

void Cluster::Impl::judge_exit(Job& job, std::size_t member, const base::TaskExit& exit,
                               TimePoint now, Actions& out) {
  if (job.keep_going || code_of(exit) == 0) return;
  const bool by_itself = !job.ending || exit.was_ending;
  blame(job,
        {failure_of(job, member, exit), code_of(exit), exit.ended,
         by_itself && is_crash(exit.signal)},
        now, out);
}

// Ranks that lose a peer abort, and that is often told before the peer's end is: a process that
// ends closes its connections first. So whoever went without a word is named before those that
// called abort; else who was first, as far as the clocks tell. What we kill ends later than what we
// kill it for.
void Cluster::Impl::blame(Job& job, Job::Failure failure, TimePoint now, Actions& out) {
  const int exit_code = std::max(job.exit_code, failure.exit_code);
  if (!job.ending) {
    job.failure = failure;
    return end(job, JobState::Failed, std::move(failure.reason), exit_code, now, out);
  }
  if (!job.failure || job.failure->is_loss > failure.is_loss) return;
  const bool is_earlier = failure.at != TimePoint() && failure.at < job.failure->at;
  if (job.failure->is_loss == failure.is_loss && !is_earlier) return;
  job.reasons = {failure.reason};
  job.exit_code = exit_code;
  job.failure = std::move(failure);
}

void Cluster::Impl::refused(Job& job, std::size_t member, const base::Refused& message,
                            TimePoint now, Actions& out) {
  const int code =
      message.exit_code >= 1 && message.exit_code <= 255 ? message.exit_code : kExitError;
  end(job, job.state == JobState::Launching ? JobState::LaunchFailed : JobState::NodeFailed,
      fmt::format("{}: {}", name_of(job, member), message.reason), code, now, out);
  gone(job, member, now, out);
}

void Cluster::Impl::exited(Job& job, std::size_t member, const base::Exited& message, TimePoint now,
                           Actions& out) {
  std::vector<base::TaskExit> fresh;
  for (const base::TaskExit& exit : message.exits) {
    if (record_exit(job, member, exit)) fresh.push_back(exit);
  }
  const std::string name = name_of(job, member);
  const std::string why = message.reason.empty() ? "ended before it was started" : message.reason;
  if (job.members[member] != Member::Started) {
    end(job, JobState::LaunchFailed, fmt::format("{}: {}", name, why), kExitError, now, out);
  } else if (!message.reason.empty()) {
    end(job, JobState::Failed, fmt::format("{}: {}", name, why),
        job.exit_code != 0 ? job.exit_code : kExitError, now, out);
  }
  for (const base::TaskExit& exit : fresh) judge_exit(job, member, exit, now, out);
  bool all_known = true;
  for (std::uint32_t rank = 0; rank < job.node_of_rank.size(); ++rank) {
    all_known = all_known && (job.node_of_rank[rank] != member || job.exit_known[rank]);
  }
  if (!all_known) {
    end(job, JobState::NodeFailed, fmt::format("{} does not say how its tasks ended", name),
        kExitError, now, out);
  }
  gone(job, member, now, out);
}

// ---- the end ----------------------------------------------------------------------------------

void Cluster::Impl::gone(Job& job, std::size_t member, TimePoint now, Actions& out) {
  if (job.members[member] == Member::Gone) return;
  if (job.members[member] == Member::Asked) --job.waited_for;
  job.members[member] = Member::Gone;
  job.to_begin.erase(member);
  if (--job.remaining == 0) return finish(job, now, out);
  hold_meetings(job, out);
}

// Decides how the job ends; only the first cause counts. Pending jobs are final at once.
void Cluster::Impl::end(Job& job, JobState final_state, std::string reason, int exit_code,
                        TimePoint now, Actions& out) {
  if (job.ending || base::is_final(job.state)) return;
  waiting_.erase(job.wait);
  if (promise_ && promise_->job == job.id) {
    promise_.reset();
    capacity_grew();
  }
  start_due_.erase(job.id);
  job.ending = final_state;
  job.exit_code = exit_code;
  job.reasons.clear();
  if (!reason.empty()) job.reasons.push_back(std::move(reason));
  stop_accrual(job, now);
  forget_activity(job);
  change(job, JobEvent::End, out);
  if (job.remaining == 0) return finish(job, now, out);
  clear_deadlines(job);
  set_deadline(job, DeadlineKind::Kill, now + config.kill_deadline);
  for (std::size_t m = 0; m < job.members.size(); ++m) {
    if (job.members[m] != Member::Gone) {
      send(job.cells.nodes[m], base::KillTasks{job.attempt()}, out);
    }
  }
}

void Cluster::Impl::finish(Job& job, TimePoint now, Actions& out) {
  if (!job.ending) {  // all tasks ended by themselves
    stop_accrual(job, now);
    forget_activity(job);
    if (job.exit_code != 0) job.reasons = {failures_of(job)};
    change(job, JobEvent::End, out);
    job.ending = job.exit_code == 0 ? JobState::Completed : JobState::Failed;
  }
  if (will_requeue(job)) return requeue(job, out);
  job.state = *job.ending;
  job.ending.reset();
  job.ended = now;
  ++counters.jobs_ended;
  --live_jobs_;
  clear_deadlines(job);
  start_due_.erase(job.id);
  out.push_back(JobChanged{job.id});
  if (!job.placed) return;
  unplace(job);
  forget_attempt(job, out);
}

void Cluster::Impl::forget_attempt(const Job& job, Actions& out) const {
  for (const NodeIndex node : job.cells.nodes) {
    if (!nodes[node].zombies.contains(job.attempt())) {
      send(node, base::ForgetTasks{job.attempt()}, out);
    }
  }
}

// Attempts have numbers of their own, and there are not more of them. What cannot run any more, as
// on nodes that came back smaller or not at all, would wait for ever.
bool Cluster::Impl::will_requeue(const Job& job) const {
  return job.ending == JobState::NodeFailed && !job.overlay() &&
         job.request.requeue == base::Requeue::Yes && job.restarts < config.max_requeues &&
         job.attempts + 1 < base::kAttemptsPerJob && check(job.request).has_value();
}

// In line again, in its old place, as if it had never run: nothing of the lost attempt counts.
void Cluster::Impl::requeue(Job& job, Actions& out) {
  clear_deadlines(job);
  ++job.restarts;
  job.ending.reset();
  job.lost = job.reasons.empty() ? std::string() : job.reasons.front();
  job.reasons.clear();
  job.exit_code = 0;
  job.failure.reset();
  job.started.reset();
  job.accrual = {};
  job.previous.reset();
  change(job, JobEvent::Requeue, out);
  if (job.placed) {
    unplace(job);
    forget_attempt(job, out);
  }
  job.cells = {};
  job.members.clear();
  job.parts.clear();
  job.tasks_on_node.clear();
  job.node_of_rank.clear();
  job.exits.clear();
  job.exit_known.clear();
  if (auto now_possible = check(job.request)) job.shape = *now_possible;
  if (!job.request.held) waiting_.insert(job.wait);
  capacity_grew();
}

// ---- deadlines --------------------------------------------------------------------------------

void Cluster::Impl::set_deadline(Job& job, DeadlineKind kind, TimePoint at) {
  auto& slot = job.deadlines[static_cast<std::size_t>(kind)];
  if (slot) deadlines_.erase({*slot, kind, job.id});
  slot = at;
  deadlines_.emplace(at, kind, job.id);
}

void Cluster::Impl::clear_deadlines(Job& job) {
  for (std::size_t kind = 0; kind < kDeadlineKinds; ++kind) {
    if (!job.deadlines[kind]) continue;
    deadlines_.erase({*job.deadlines[kind], static_cast<DeadlineKind>(kind), job.id});
    job.deadlines[kind].reset();
  }
}

void Cluster::Impl::deadline_due(Job& job, DeadlineKind kind, TimePoint now, Actions& out) {
  switch (kind) {
    case DeadlineKind::Launch:
      return launch_overdue(job, now, out);
    case DeadlineKind::Begin:
      return begin_overdue(job, now, out);
    case DeadlineKind::Kill:
      return kill_overdue(job, now, out);
    case DeadlineKind::Wall:
      return end(job, JobState::TimedOut,
                 fmt::format("wall-time limit {} reached", seconds(job.request.wall_limit)),
                 kExitLimit, now, out);
    case DeadlineKind::Scheduled:
      return watch_scheduled_limit(job, now, out);
    case DeadlineKind::Quiet:
      return judge_activity(job, now, out);
  }
}

void Cluster::Impl::launch_overdue(Job& job, TimePoint now, Actions& out) {
  if (job.state != JobState::Launching) return;
  std::string silent;
  for (std::size_t m = 0; m < job.members.size(); ++m) {
    if (job.members[m] != Member::Asked) continue;
    if (!silent.empty()) silent += ",";
    silent += name_of(job, m);
  }
  end(job, JobState::LaunchFailed,
      fmt::format("no answer within {} from {}", seconds(config.launch_deadline), silent),
      kExitError, now, out);
}

// Tasks are forked in the job's own slices, so its own time counts: a job that is suspended, or has
// one slice in many, is waited for as long as it takes.
void Cluster::Impl::begin_overdue(Job& job, TimePoint now, Actions& out) {
  if (job.to_begin.empty() || job.ending) return;
  const Duration missing = config.launch_deadline - (scheduled(job, now) - job.begin_from);
  if (missing > Duration::zero()) {
    return set_deadline(job, DeadlineKind::Begin, now + std::max(missing, config.quantum));
  }
  std::string silent;
  for (const std::size_t m : job.to_begin) {
    if (!silent.empty()) silent += ",";
    silent += name_of(job, m);
  }
  end(job, JobState::LaunchFailed,
      fmt::format("no task began within {} on {}", seconds(config.launch_deadline), silent),
      kExitError, now, out);
}

// What a living node could not kill in time is not waited for: the job ends, and nothing is placed
// on the node until it reports the attempt gone. Nodes without a link come back or go down soon.
void Cluster::Impl::kill_overdue(Job& job, TimePoint now, Actions& out) {
  set_deadline(job, DeadlineKind::Kill, now + config.kill_deadline);
  const std::vector<Member> before = job.members;
  for (std::size_t m = 0; m < before.size(); ++m) {
    if (before[m] == Member::Gone) continue;
    const NodeIndex index = job.cells.nodes[m];
    if (!nodes[index].connected) continue;
    nodes[index].stuck = true;
    bury(index, job.attempt(), out);
    refresh_state(nodes[index], out);
    gone(job, m, now, out);
    if (job.remaining == 0) return;  // it has ended, or waits in line again without nodes
  }
}

// Checked when the limit can be reached at the earliest, then again until it is. While more than a
// cycle is missing its share may still grow, so the bound is full use of the time.
void Cluster::Impl::watch_scheduled_limit(Job& job, TimePoint now, Actions& out) {
  if (job.request.scheduled_limit <= Duration::zero() || job.state != JobState::Running) return;
  const Duration missing = job.request.scheduled_limit - scheduled(job, now);
  if (missing <= Duration::zero()) {
    return end(job, JobState::TimedOut,
               fmt::format("time limit {} reached", seconds(job.request.scheduled_limit)),
               kExitLimit, now, out);
  }
  const bool near = missing <= cycles_.newest().length();
  const Duration wait = near ? time_to_run(job, missing, now) : missing;
  set_deadline(job, DeadlineKind::Scheduled, now + wait);
}

}  // namespace score::gang
