#include "scored/head/jobs/job_life.hpp"

#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scored/head/notices/limit_parts.hpp"
#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace score::head {
namespace {

std::string first_failed_rank(const wire::JobStatus& status) {
  return status.failed_tasks_size() > 0 ? std::to_string(status.failed_tasks(0).rank()) : "";
}

NoticeKinds kinds_of_end(JobState state) {
  NoticeKinds kinds;
  kinds.add(NoticeKind::End);
  if (state == JobState::TimedOut) kinds.add(NoticeKind::TimeLimit);
  if (state != JobState::Completed && state != JobState::Cancelled) kinds.add(NoticeKind::Fail);
  return kinds;
}

}  // namespace

JobLife::JobLife(HeadContext& head, Parts parts, Listener& listener)
    : head_(head), parts_(parts), listener_(listener) {
  parts_.streams.set_listener(*this);
}

// ---- beginning ----------------------------------------------------------------------------------

void JobLife::begin(AddJob&& add, const ResourceRequest& request) {
  Job& job = head_.jobs.add(std::move(add.info));
  const JobId id = job.info.id;
  job.progress.detached = add.detached;
  if (add.rest != ArrayRest()) job.rest.edit() = add.rest;
  set_saved(job, job.progress);
  const bool is_driven = !add.detached;
  parts_.streams.open(
      {id, job.info.user, is_driven, job.info.stdin_rank, false, request.distribution});
  resume(job, true);
  note_event(job, job.info.submitted, head_.jobs.share("accepted"));
  add_event(job, "submitted", {});
  log_info("Accepted job", kv("job", id), kv("user", job.info.user), kv("name", job.info.name));
  gang::Cluster& cluster = head_.runner.cluster();
  ResourceRequest given = request;
  job.is_deferred = listener_.defers(job);
  job.is_held = job.is_deferred && request.held;
  given.held = request.held || job.is_deferred;
  auto actions = cluster.submit(id, job.info.user, given, now());
  if (!actions) return end_unbegun(job, actions.error());
  if (job.info.keep_going) (void)cluster.set_keep_going(id, true);
  head_.runner.perform(std::move(*actions));
  listener_.accepted(job);
}

void JobLife::resume(Job& job, bool waits) {
  const JobId id = job.info.id;
  const bool is_driven = !job.progress.detached;
  if (is_driven) front_end_lost(id);
  if (waits) wait_for_place(job);
}

// Sets the deadline of --immediate.
void JobLife::wait_for_place(const Job& job) {
  if (job.info.immediate <= Duration{0}) return;
  set_deadline(job.info.id, DeadlineKind::Immediate, now() + job.info.immediate);
}

void JobLife::resume_cancel(Job& job, const std::string& by) {
  job.ended_by = gang::EndCause::User;
  job.why_ended = "cancelled by " + by;
  let_end(job.info.id);
  const bool has_tasks = job.progress.state != JobState::Pending;
  set_deadline(job.info.id, DeadlineKind::Kill,
               has_tasks ? now() + head_.config.kill_grace : now());
}

// Ends a job before it began, because the cluster has changed between check and commit, for example
// by a reload.
void JobLife::end_unbegun(Job& job, const Error& error) {
  gang::JobView view;
  view.id = job.info.id;
  view.user = job.info.user;
  view.state = JobState::LaunchFailed;
  view.exit_code = kExitError;
  view.reasons = {error.message()};
  end(job, view);
}

// ---- changes ------------------------------------------------------------------------------------

void JobLife::changed(JobId id) {
  Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return;
  const auto view = head_.runner.view(id);
  if (!view) return;
  note_state(*job, *view);
  note_wait(*job, *view);
  note_activity(*job, *view);
  if (is_final(view->state)) return end(*job, *view);
  note_limit_parts(*job, *view);
  save_progress(*job);
  send_notices(*job, *view);
  inform_watchers(*job, *view);
  if (!view->limit.empty() && !view->ending && !job->ended_by) {
    terminate(*job, gang::EndCause::TimeLimit, view->limit, head_.config.kill_grace);
  }
}

void JobLife::note_state(Job& job, const gang::JobView& view) {
  const JobState before = std::exchange(job.progress.state, view.state);
  job.progress.scheduled = view.scheduled;
  job.progress.filled = view.filled;
  job.progress.steps_usage = view.steps_usage;
  job.progress.ending = view.ending;
  job.progress.exit_code = view.ending ? view.exit_code : 0;
  job.progress.reasons = view.ending ? view.reasons : std::vector<std::string>();
  job.is_untried = view.is_untried;
  if (view.restarts > job.progress.restarts || view.relaunches > job.relaunches) {
    note_requeue(job, view);
  }
  if (view.state == before) return;
  const std::string why = view.reasons.empty() ? "" : view.reasons.front();
  log_info("Changed job", kv("job", job.info.id),
           kv("state", fmt::format("{}->{}", name_of(before), name_of(view.state))),
           kv("cause", why));
  if (!is_final(view.state)) note_event(job, wall_now(), event_text(event_of(job, view, before)));
  add_event(job, name_of(shown_state(job, view.state)), job.ended_by ? job.why_ended.str() : why);
  if (view.state != JobState::Pending) deadlines_.clear(job.info.id, DeadlineKind::Immediate);
  if (view.state == JobState::Running && job.progress.started == WallTime()) note_start(job, view);
  if (view.state == JobState::Completing) parts_.streams.release(job.info.id);
  if (view.state != JobState::Pending && !is_final(view.state)) listener_.began(job);
}

void JobLife::note_start(Job& job, const gang::JobView& view) {
  job.progress.started = wall_now();
  job.progress.start_mark = now();
  job.happened.add(NoticeKind::Begin);
  waits_.add(std::max(job.progress.started - job.info.submitted, Duration(0)));
  report(Event::JobStarted, kv("job", job.info.id),
         kv("user", head_.users.name(job.info.user, now())),
         kv("nodes", compress_hostlist(job.progress.placement.nodes)),
         kv("slot", view.slot ? std::to_string(view.slot->value()) : std::string()));
  parts_.streams.start_input(job.info.id);
}

// Removes what the lost attempt left behind. A job that is being ended does not wait for a new
// attempt.
void JobLife::note_requeue(Job& job, const gang::JobView& view) {
  const JobId id = job.info.id;
  const bool is_relaunch = view.relaunches > job.relaunches;
  job.relaunches = view.relaunches;
  job.progress.restarts = view.restarts;
  job.progress.started = WallTime();
  job.progress.start_mark = TimePoint();
  job.progress.noticed = 0;  // its limits begin anew
  job.filled.reset();
  parts_.networks.close(job.progress.placement.attempt);
  parts_.volumes.close(job.progress.placement.attempt);
  parts_.streams.requeue(id);
  if (is_relaunch) {
    note_event(job, wall_now(), event_text("will be launched again, no task ran: " + view.lost));
    log_notice("Requeued job for a new launch", kv("job", id), kv("reason", view.lost));
    inform_of_relaunch(job, view);
    wait_for_place(job);
  } else {
    note_event(job, wall_now(),
               event_text(fmt::format("requeued, restart {}: {}", view.restarts, view.lost)));
    job.happened.add(NoticeKind::Requeue);
    log_notice("Requeued job", kv("job", id), kv("restart", view.restarts),
               kv("reason", view.lost));
  }
  add_event(job, is_relaunch ? "will be launched again" : "requeued", view.lost);
  deadlines_.clear(id, DeadlineKind::Kill);
  job.is_requeued = false;
  if (job.ended_by) set_deadline(id, DeadlineKind::Kill, now());
}

void JobLife::note_wait(Job& job, const gang::JobView& view) {
  std::string reasons;
  if (view.state == JobState::Pending) reasons = joined(reasons_of(job, view));
  const SharedText wait = reasons.empty() ? SharedText() : event_text("waits: " + reasons);
  if (wait == job.last_wait) return;
  job.last_wait = head_.jobs.share(wait);
  if (!wait.empty()) note_event(job, wall_now(), job.last_wait);
}

void JobLife::note_activity(Job& job, const gang::JobView& view) {
  const gang::JobActivity before = std::exchange(job.activity, view.activity);
  if (view.activity == before) return;
  log_info("Changed job", kv("job", job.info.id), kv("activity", name_of(view.activity)));
  if (view.activity == gang::JobActivity::Deadlocked) {
    std::string why = view.reasons.empty() ? "no task can go on" : view.reasons.front();
    constexpr std::string_view kNamed = "deadlock: ";
    if (why.starts_with(kNamed)) why.erase(0, kNamed.size());
    report(Event::JobDeadlocked, kv("job", job.info.id),
           kv("user", head_.users.name(job.info.user, now())), kv("reason", why));
    note_event(job, wall_now(), event_text("deadlocked: " + why));
    add_event(job, "deadlocked", why);
  }
}

// Scheduled time passes more slowly than time, so a part that was not reached is looked for again.
void JobLife::note_limit_parts(Job& job, const gang::JobView& view) {
  if (!view.started || !parts_.notices.wants_limit_parts(job.info.notices)) return;
  const TimeUse use{view.scheduled, view.request.scheduled_limit, now() - *view.started,
                    view.request.wall_limit};
  const PartsReached reached = parts_reached(use, job.progress.noticed);
  job.progress.noticed = reached.percent;
  job.happened.bits |= reached.kinds.bits;
  if (const auto wait = time_to_next_part(use, reached.percent)) {
    set_deadline(job.info.id, DeadlineKind::LimitPart, now() + *wait);
  }
}

void JobLife::send_notices(Job& job, const gang::JobView& view) {
  const NoticeKinds kinds = std::exchange(job.happened, NoticeKinds());
  if (kinds.empty() || !parts_.notices.is_wanted(job.info.notices)) return;
  wire::JobStatus status = parts_.queries.status(job, view);
  auto what = parts_.notices.describe(job.info.notices, kinds, std::move(status));
  if (what) parts_.notices.when_stored(*std::move(what));
}

void JobLife::save_progress(Job& job) {
  if (job.saved && *job.saved == asked_progress(job)) return;
  head_.commits.add(asked(job));
}

Change JobLife::asked(Job& job) {
  set_saved(job, asked_progress(job));
  return SaveProgress{job.info.id, *job.saved, parts_.shares.charge(job)};
}

void JobLife::answered(Job& job, const Status& stored) {
  job.asked_state.reset();
  job.asked_detached = false;
  if (!stored) job.saved.reset();  // the state on disk may have been stored with a different change
  save_progress(job);
}

void JobLife::save_running() {
  for (const auto& [id, job] : head_.jobs.all()) {
    if (!job.ended && job.progress.state != JobState::Pending) head_.runner.touch(id);
  }
}

// Sends watchers each change of the reasons, and nothing twice.
void JobLife::inform_watchers(Job& job, const gang::JobView& view) {
  if (!parts_.streams.has_clients(job.info.id)) return;
  std::string news(name_of(view.state));
  if (view.activity == gang::JobActivity::Deadlocked) news += ", deadlocked";
  for (const std::string& reason : reasons_of(job, view)) (news += '\n') += reason;
  if (news == job.last_news) return;
  job.last_news = SharedText(std::move(news));
  parts_.streams.news(job.info.id, parts_.queries.status(job, view));
}

// A launch is often repeated at once, so no other news would show why the job started late.
void JobLife::inform_of_relaunch(Job& job, const gang::JobView& view) {
  if (!parts_.streams.has_clients(job.info.id)) return;
  wire::JobStatus status = parts_.queries.status(job, view);
  status.set_state(static_cast<std::uint32_t>(JobState::Pending));
  status.clear_reasons();
  status.add_reasons(escape_terminal("its launch failed and is repeated: " + view.lost,
                                     limits::kMaxErrorTextBytes));
  job.last_news = SharedText();
  parts_.streams.news(job.info.id, std::move(status));
}

void JobLife::add_event(const Job& job, std::string_view what, std::string_view why) {
  EventFeed::About about;
  about.job = job.info.id;
  about.public_text = fmt::format("job {} {}", job.info.id, what);
  std::string text = fmt::format("job {} ({} of {}) {}", job.info.id,
                                 escape_terminal(job.info.name, limits::kMaxJobNameBytes),
                                 head_.users.name(job.info.user, now()), what);
  if (!why.empty()) text += fmt::format(": {}", why);
  head_.feed.add(monitor::EventKind::Job, std::move(text), std::move(about));
}

// ---- end ----------------------------------------------------------------------------------------

void JobLife::terminate(Job& job, gang::EndCause cause, std::string why, Duration grace) {
  const JobId id = job.info.id;
  if (job.ended_by) {  // its grace is running
    if (grace <= Duration{0}) kill(id, *job.ended_by);
    return;
  }
  gang::Cluster& cluster = head_.runner.cluster();
  if (grace <= Duration{0}) return kill(id, cause);
  auto actions = cluster.signal(id, SIGTERM, now());
  if (!actions) return kill(id, cause);
  for (const JobId step : job.steps->active) end_step(step, cause, why);
  job.ended_by = cause;
  job.why_ended = std::move(why);
  let_end(id);
  set_deadline(id, DeadlineKind::Kill, now() + grace);
  head_.runner.perform(std::move(*actions));
  // Stopped tasks receive SIGTERM only when they are continued.
  if (auto again = cluster.signal(id, SIGCONT, now())) head_.runner.perform(std::move(*again));
}

// A step's tasks were sent the signal together with those of its job, and have the same grace.
void JobLife::end_step(JobId id, gang::EndCause cause, const std::string& why) {
  Job* step = head_.jobs.find(id);
  if (step == nullptr || step->ended_by) return;
  step->ended_by = cause;
  step->why_ended = why;
  let_end(id);
}

// Lets each task use its grace: a task that ends by SIGTERM does not end the others.
void JobLife::let_end(JobId id) {
  if (auto known = head_.runner.cluster().let_end(id); !known) {
    log_debug("Cannot mark the job as ending", kv("job", id), kv("err", known.error()));
  }
}

void JobLife::kill(JobId id, gang::EndCause cause) {
  deadlines_.clear(id, DeadlineKind::Kill);
  auto actions = head_.runner.cluster().cancel(id, cause, now());
  if (actions) return head_.runner.perform(std::move(*actions));
  log_debug("Cannot cancel job", kv("job", id), kv("err", actions.error()));
}

void JobLife::requeue(Job& job, const gang::Actions& accepted, Duration grace) {
  const JobId id = job.info.id;
  gang::Cluster& cluster = head_.runner.cluster();
  job.is_requeued = true;
  head_.runner.perform(accepted);
  auto actions = cluster.signal(id, SIGTERM, now());
  if (!actions || grace <= Duration{0}) return end_attempt(id);
  for (const JobId step : job.steps->active) let_end(step);
  set_deadline(id, DeadlineKind::Kill, now() + grace);
  head_.runner.perform(std::move(*actions));
  // As in terminate().
  if (auto again = cluster.signal(id, SIGCONT, now())) head_.runner.perform(std::move(*again));
}

void JobLife::resume_requeue(Job& job) {
  job.is_requeued = true;
  set_deadline(job.info.id, DeadlineKind::Kill, now() + head_.config.kill_grace);
}

void JobLife::end_attempt(JobId id) {
  deadlines_.clear(id, DeadlineKind::Kill);
  auto actions = head_.runner.cluster().end_attempt(id, now());
  if (actions) return head_.runner.perform(std::move(*actions));
  log_debug("Cannot end the attempt", kv("job", id), kv("err", actions.error()));
}

void JobLife::end_waiting(Job& job, std::string why) {
  if (!job.ended_by) job.why_ended = std::move(why);
  job.exit_code = kExitError;
  kill(job.info.id, gang::EndCause::User);
}

void JobLife::abort(AttemptId attempt, std::string why) {
  const Job* job = head_.jobs.find(job_of(attempt));
  if (job == nullptr || job->nodes.empty()) return;
  AbortRequested request;
  request.attempt = attempt;
  request.code = kExitError;
  request.message = std::move(why);
  head_.runner.perform(head_.runner.cluster().node_says(job->nodes.front(), request, now()));
}

void JobLife::end(Job& job, const gang::JobView& view) {
  const JobId id = job.info.id;
  job.progress.state = shown_state(job, view.state);
  wire::JobStatus status = parts_.queries.status(job, view);
  parts_.queries.add_steps(job, status);
  const WallTime ended = WallTime(Duration(status.ended_wall_ns()));
  note_event(job, ended, event_text(end_event(status)));
  add_events(job, status);
  head_.jobs.end(job, status, now());
  deadlines_.clear(id);
  report(Event::JobEnded, kv("job", id), kv("user", head_.users.name(job.info.user, now())),
         kv("state", name_of(job.progress.state)), kv("exit", status.exit_code()),
         kv("rank", first_failed_rank(status)),
         kv("reason", status.reasons_size() > 0 ? status.reasons(0) : std::string()));
  SaveEnd saved;
  saved.id = id;
  saved.progress = job.progress;
  saved.exit_code = status.exit_code();
  saved.signal = status.signal();
  saved.usage = view.usage;
  saved.ended = ended;
  saved.status = status.SerializeAsString();
  saved.profile = profile_to_wire(*job.profile).SerializeAsString();
  saved.is_step = job.info.step_of != JobId(0);
  saved.account = job.info.account;
  saved.generic = format_generic(view.request.generic);
  saved.partition = job.info.partition;
  saved.licenses = format_licenses(view.request.licenses);
  saved.use = parts_.shares.charge(job);
  std::optional<JobHappening> what;
  if (parts_.notices.is_wanted(job.info.notices)) {
    what = parts_.notices.describe(job.info.notices, kinds_of_end(job.progress.state), status);
  }
  head_.commits.add(std::move(saved), [this, id, what = std::move(what)](const Status&) {
    recorded(id);
    if (what) parts_.notices.stored(*what);
  });
  set_deadline(id, DeadlineKind::Drop, now() + head_.config.front_end_grace);
  parts_.networks.close(job.progress.placement.attempt);
  parts_.volumes.close(job.progress.placement.attempt);
  parts_.streams.finish(id, std::move(status));
  listener_.ended(job);
  parts_.shares.ended();
}

void JobLife::recorded(JobId id) {
  head_.runner.cluster().forget(id);
  if (Job* job = head_.jobs.find(id)) job->end_is_stored = true;
  for (const auto& then : std::exchange(waiting_[id], {})) then();
  waiting_.erase(id);
  drop_if_done(id);
}

void JobLife::when_recorded(JobId id, std::function<void()> then) {
  const Job* job = head_.jobs.find(id);
  if (job == nullptr || job->end_is_stored) return then();
  waiting_[id].push_back(std::move(then));
}

// An ended job stays until its end is on disk, and until its output was fetched or no client came
// for it in time.
void JobLife::drop_if_done(JobId id) {
  const Job* job = head_.jobs.find(id);
  if (job == nullptr || !job->ended || !job->end_is_stored) return;
  if (deadlines_.has(id, DeadlineKind::Drop)) return;
  if (parts_.streams.has_clients(id) && !parts_.streams.is_delivered(id)) {
    return set_deadline(id, DeadlineKind::Drop, now() + head_.config.front_end_grace);
  }
  parts_.streams.close(id, job->info.user);
  head_.jobs.erase(id);
}

// ---- front end ----------------------------------------------------------------------------------

void JobLife::front_end_attached(JobId id) {
  deadlines_.clear(id, DeadlineKind::FrontEnd);
}

void JobLife::front_end_lost(JobId id) {
  set_deadline(id, DeadlineKind::FrontEnd, now() + head_.config.front_end_grace);
}

void JobLife::front_end_left(JobId id, CommitLog::Confirmed done) {
  Job* asking = head_.jobs.find(id);
  if (asking == nullptr || asking->ended) return head_.commits.confirm({}, std::move(done));
  asking->asked_detached = true;
  std::vector<Change> changes = {asked(*asking)};
  head_.commits.confirm(std::move(changes), [this, id, done](const Result<LogReceipt>& stored) {
    Job* job = head_.jobs.find(id);
    if (job != nullptr && !job->ended) {
      if (stored) {
        deadlines_.clear(id, DeadlineKind::FrontEnd);
        job->progress.detached = true;
        parts_.streams.abandon(id);
      } else {
        front_end_lost(id);
      }
      answered(*job, stored ? Status() : stored.error());
    }
    done(stored);
  });
}

void JobLife::output_delivered(JobId id) {
  set_deadline(id, DeadlineKind::Drop, now());
}

// ---- deadlines ----------------------------------------------------------------------------------

void JobLife::set_deadline(JobId job, DeadlineKind kind, TimePoint at) {
  deadlines_.set(job, kind, at);
  head_.alarm.at(at);
}

void JobLife::tick(TimePoint at) {
  while (const auto due = deadlines_.take_due(at)) meet(*due);
}

void JobLife::meet(const Deadlines::Due& due) {
  if (due.kind == DeadlineKind::Drop) return drop_if_done(due.job);
  Job* job = head_.jobs.find(due.job);
  if (job == nullptr || job->ended) return;
  switch (due.kind) {
    case DeadlineKind::Kill:
      if (job->is_requeued && !job->ended_by) return end_attempt(due.job);
      return kill(due.job, job->ended_by.value_or(gang::EndCause::User));
    case DeadlineKind::FrontEnd:
      if (parts_.streams.has_front_end(due.job)) return;
      log_notice("Ended job without front end", kv("job", due.job));
      return terminate(*job, gang::EndCause::FrontEndGone, "", head_.config.kill_grace);
    case DeadlineKind::LimitPart:
      head_.runner.touch(due.job);
      return head_.runner.perform({});
    case DeadlineKind::Immediate:
      return end_waiting(*job, fmt::format("could not start within {} (--immediate)",
                                           format_duration(job->info.immediate)));
    case DeadlineKind::Drop:
      return;
  }
}

}  // namespace score::head
