#include "scored/head/admin/job_commands.hpp"

#include "proto/convert/convert.hpp"
#include "scored/head/store/settings.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

std::string packed(const ResourceRequest& request) {
  return proto::to_wire(request).SerializeAsString();
}

std::optional<gang::JobRequest> kind_of(ControlJob::What what) {
  switch (what) {
    case wire::ControlJob::SUSPEND:
      return gang::JobRequest::Suspend;
    case wire::ControlJob::RESUME:
      return gang::JobRequest::Resume;
    case wire::ControlJob::HOLD:
      return gang::JobRequest::Hold;
    case wire::ControlJob::RELEASE:
      return gang::JobRequest::Release;
    case wire::ControlJob::SET_WEIGHT:
      return gang::JobRequest::SetWeight;
    case wire::ControlJob::SET_PRIORITY:
      return gang::JobRequest::SetPriority;
    case wire::ControlJob::REQUEUE:
      return gang::JobRequest::Requeue;
    default:
      return std::nullopt;
  }
}

// Returns the operator who holds or has suspended a job of another user; empty if there is none.
std::string keeper_after(const Peer& peer, const Job& job, ControlJob::What what) {
  if (what == wire::ControlJob::RELEASE || what == wire::ControlJob::RESUME) return {};
  const bool keeps = what == wire::ControlJob::HOLD || what == wire::ControlJob::SUSPEND;
  return keeps && peer.user != job.info.user ? peer.name : job.kept_by.str();
}

}  // namespace

Result<Job*> JobCommands::active_job(JobId id) {
  Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  return job;
}

Result<Changes> JobCommands::check(const Peer&, const SignalJob& command) {
  if (command.signal < 1 || command.signal > SIGRTMAX) {
    return fail(Errc::Malformed, "signal {} does not exist", command.signal);
  }
  if (auto job = active_job(command.job); !job) return job.error();
  return Changes();
}

Result<Effect> JobCommands::prepare(const Peer&, const SignalJob& command) {
  return effect_of(head_, head_.runner.cluster().signal(command.job, command.signal, now()));
}

// A job that is already ending has its first cause on disk, so nothing more is stored.
Result<Changes> JobCommands::check(const Peer& peer, const CancelJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  if ((*job)->info.is_array()) {
    return parts_.arrays.check_cancel(**job, command.tasks, peer.name);
  }
  if (!command.tasks.empty()) {
    return fail(Errc::NotFound, "job {} is not an array", command.job);
  }
  if ((*job)->ended_by) return Changes();
  return Changes{cancel_setting(command.job, peer.name)};
}

Result<Effect> JobCommands::prepare(const Peer& peer, const CancelJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  const bool is_owner = peer.user == (*job)->info.user;
  const auto cause = is_owner ? gang::EndCause::User : gang::EndCause::Operator;
  const Duration grace =
      std::min<Duration>(command.grace.value_or(parts_.config.kill_grace), kLongestWait);
  if ((*job)->info.is_array()) {
    return [this, job = *job, by = peer.name, tasks = command.tasks, grace] {
      parts_.arrays.cancel(*job, tasks, by, grace);
    };
  }
  return [this, job = *job, by = peer.name, cause, grace] {
    parts_.life.terminate(*job, cause, "cancelled by " + by, grace);
  };
}

Status JobCommands::permit_control(const Peer& peer, const Job& job, const ControlJob& command) {
  const bool lets_go = command.what == wire::ControlJob::RELEASE ||
                       command.what == wire::ControlJob::RESUME ||
                       command.what == wire::ControlJob::REQUEUE;
  if (lets_go && !job.kept_by.empty() && peer.role == proto::Role::OtherUser) {
    return parts_.permissions.refuse(
        peer, request_of(command), "held",
        fmt::format("{} has held or suspended job {}; only operators may let it continue",
                    job.kept_by.str(), job.info.id));
  }
  if (!parts_.submissions.is_limited(peer)) return {};
  if (command.what == wire::ControlJob::SET_WEIGHT) {
    return check_weight(parts_.config.limits, command.weight);
  }
  if (command.what == wire::ControlJob::SET_PRIORITY) {
    return check_priority(parts_.config.limits, command.priority);
  }
  return {};
}

Result<gang::Actions> JobCommands::control(const std::string& by, Job& job,
                                           const ControlJob& command) {
  gang::Cluster& cluster = head_.runner.cluster();
  const bool is_hold = command.what == wire::ControlJob::HOLD;
  if (job.is_deferred && (is_hold || command.what == wire::ControlJob::RELEASE)) {
    job.is_held = is_hold;
    if (job.info.is_array()) parts_.arrays.hold_changed(job);
    head_.runner.touch(command.job);
    return gang::Actions();
  }
  switch (command.what) {
    case wire::ControlJob::SUSPEND:
      return cluster.suspend(command.job, now());
    case wire::ControlJob::RESUME:
      return cluster.resume(command.job, now());
    case wire::ControlJob::HOLD:
      return cluster.hold(command.job, now());
    case wire::ControlJob::RELEASE:
      return cluster.release(command.job, now());
    case wire::ControlJob::SET_WEIGHT:
      return cluster.set_weight(command.job, command.weight, now());
    case wire::ControlJob::SET_PRIORITY:
      return cluster.set_priority(command.job, command.priority, now());
    case wire::ControlJob::REQUEUE:
      return cluster.requeue(command.job, JobLife::why_requeued(by), now());
    default:
      return fail(Errc::Malformed, "unknown request");
  }
}

// A job with a front end has its input there, and its output has been shown.
Result<Changes> JobCommands::check_requeue(const Peer& peer, const Job& job,
                                           const gang::JobView& view) {
  const JobId id = job.info.id;
  const bool has_front_end = !job.progress.detached;
  if (has_front_end) {
    return fail(Errc::Denied, "job {} has a front end; only batch and detached jobs are requeued",
                id);
  }
  if (job.ended_by) return fail(Errc::WrongState, "job {} is ending", id);
  return Changes{
      requeue_setting(id, StoredRequeue{view.attempt, view.asked_restarts + 1, peer.name})};
}

// A job that an operator holds or has suspended cannot be released by its owner.
Result<Changes> JobCommands::check(const Peer& peer, const ControlJob& command) {
  const auto found = active_job(command.job);
  if (!found) return found.error();
  Job& job = **found;
  if (auto allowed = permit_control(peer, job, command); !allowed) return allowed.error();
  const auto view = head_.runner.view(command.job);
  if (!view) return view.error();
  const auto request = kind_of(command.what);
  if (!request) return fail(Errc::Malformed, "unknown request");
  if (auto possible = head_.runner.cluster().check(command.job, *request, command.weight);
      !possible) {
    return possible.error();
  }
  if (command.what == wire::ControlJob::REQUEUE) return check_requeue(peer, job, *view);
  Changes changes;
  const std::string keeper = keeper_after(peer, job, command.what);
  if (keeper != job.kept_by) changes.emplace_back(keep_setting(command.job, keeper));
  if (command.what == wire::ControlJob::SUSPEND || command.what == wire::ControlJob::RESUME) {
    job.asked_state =
        command.what == wire::ControlJob::SUSPEND ? JobState::Suspended : JobState::Running;
    changes.push_back(parts_.life.asked(job));
    return changes;
  }
  ResourceRequest wanted = asked_request(job, *view);
  if (command.what == wire::ControlJob::HOLD) wanted.held = true;
  if (command.what == wire::ControlJob::RELEASE) wanted.held = false;
  if (command.what == wire::ControlJob::SET_WEIGHT) wanted.weight = command.weight;
  if (command.what == wire::ControlJob::SET_PRIORITY) wanted.priority = command.priority;
  changes.emplace_back(SaveResources{command.job, packed(wanted)});
  return changes;
}

Result<Effect> JobCommands::prepare(const Peer& peer, const ControlJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  auto actions = control(peer.name, **job, command);
  if (!actions) return actions.error();
  if (command.what == wire::ControlJob::REQUEUE) {
    return [this, job = *job, actions = std::move(*actions)] {
      parts_.life.requeue(*job, actions, parts_.config.kill_grace);
    };
  }
  return [this, job = *job, peer, command, actions = std::move(*actions)] {
    job->kept_by = keeper_after(peer, *job, command.what);
    head_.runner.perform(actions);
    if (job->asked_state) parts_.life.answered(*job, {});
  };
}

void JobCommands::restore_requeue(JobId id) {
  const auto view = head_.runner.view(id);
  const bool has_count = active_job(id) && view && view->asked_restarts > 0;
  head_.commits.add(requeue_setting(
      id, has_count ? std::optional(StoredRequeue{AttemptId(), view->asked_restarts, ""})
                    : std::nullopt));
}

void JobCommands::restore(const ControlJob& command, const Status& stored) {
  if (command.what == wire::ControlJob::REQUEUE) {
    if (stored) restore_requeue(command.job);
    return;
  }
  const auto job = active_job(command.job);
  if (!job) return;
  if ((*job)->asked_state) return parts_.life.answered(**job, stored);
  if (!stored) return;
  head_.commits.add(keep_setting(command.job, (*job)->kept_by));
  if (const auto view = head_.runner.view(command.job)) {
    head_.commits.add(SaveResources{command.job, packed(asked_request(**job, *view))});
  }
}

void JobCommands::when_recorded(const CancelJob& command, const std::function<void()>& done) {
  if (command.tasks.empty()) return parts_.life.when_recorded(command.job, done);
  const auto jobs = parts_.arrays.jobs(command.job, command.tasks);
  const auto left = std::make_shared<std::size_t>(jobs.size());
  if (jobs.empty()) return done();
  for (const JobId job : jobs) {
    parts_.life.when_recorded(job, [done, left] {
      if (--*left == 0) done();
    });
  }
}

}  // namespace score::head
