// What clients change about jobs that are there: signals, the end, hold and release, share and
// priority. Who asked is written down.
#include "base/os/log.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/head.hpp"
#include "scored/journal/event.hpp"

#include <algorithm>
#include <csignal>

namespace score::head {
namespace {

constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

void audit(const Peer& peer, std::string_view action, Job& job, std::string_view value) {
  report(Event::CommandDone, kv("user", peer.name), kv("action", action), kv("job", job.info.id),
         kv("value", value), kv("via", peer.via));
  note_event(job, wall_now(),
             fmt::format("{}{}{} asked by {}", action, value.empty() ? "" : " ", value, peer.name));
}

Error not_active(JobId job) {
  return fail(Errc::WrongState, "job {} has ended", job);
}

}  // namespace

Status Head::signal(const Peer& peer, const wire::SignalJob& message) {
  const JobId id(message.job());
  if (message.signal() < 1 || message.signal() > SIGRTMAX) {
    return fail(Errc::Malformed, "signal {} does not exist", message.signal());
  }
  Job* job = find(id);
  if (job == nullptr || job->ended) return not_active(id);
  auto actions = cluster_.signal(id, message.signal(), now());
  if (!actions) return actions.error();
  audit(peer, "signal", *job, std::to_string(message.signal()));
  tell_audit(peer, "signal", std::to_string(message.signal()), id);
  perform(std::move(*actions));
  return {};
}

Status Head::cancel(const Peer& peer, const wire::CancelJob& message) {
  const JobId id(message.job());
  Job* job = find(id);
  if (job == nullptr || job->ended) return not_active(id);
  const auto cause = peer.user == job->info.user ? gang::EndCause::User : gang::EndCause::Operator;
  const Duration grace = message.grace_ns() < 0
                             ? config_.kill_grace
                             : std::min<Duration>(Duration(message.grace_ns()), kLongestWait);
  audit(peer, "cancel", *job, "grace " + format_duration(grace));
  tell_audit(peer, "cancel", {}, id);
  if (grace > Duration{0} && !job->is_being_cancelled) {
    auto actions = cluster_.signal(id, SIGTERM, now());
    if (actions) {
      job->is_being_cancelled = true;
      job->cancel_cause = cause;
      job->why_ended = "cancelled by " + peer.name;
      deadlines_.set(id, DeadlineKind::Kill, now() + grace);
      commits_->add(cancel_setting(id, peer.name));
      perform(std::move(*actions));
      // Tasks that are stopped do not hear the first one.
      if (auto again = cluster_.signal(id, SIGCONT, now())) perform(std::move(*again));
      return {};
    }
  }
  if (grace > Duration{0} && job->is_being_cancelled) return {};  // its grace is running
  finish_cancel(id, cause);
  return {};
}

void Head::finish_cancel(JobId id, gang::EndCause cause) {
  deadlines_.clear(id, DeadlineKind::Kill);
  auto actions = cluster_.cancel(id, cause, now());
  if (actions) return perform(std::move(*actions));
  log_debug("cannot cancel", kv("job", id), kv("err", actions.error()));
}

Status Head::check_control(const Peer& peer, const Job& job, const wire::ControlJob& message) {
  const bool lets_go =
      message.what() == wire::ControlJob::RELEASE || message.what() == wire::ControlJob::RESUME;
  if (lets_go && !job.kept_by.empty() && peer.role == proto::Role::OtherUser) {
    return fail(Errc::Denied, "{} keeps job {} from running; only operators let it go on",
                job.kept_by, job.info.id);
  }
  if (!is_limited(peer)) return {};
  if (message.what() == wire::ControlJob::SET_WEIGHT) {
    return check_weight(config_.limits, message.weight());
  }
  if (message.what() == wire::ControlJob::SET_PRIORITY) {
    return check_priority(config_.limits, message.priority());
  }
  return {};
}

// What an operator holds or suspends of another's is not for its owner to let go on.
void Head::note_keeper(const Peer& peer, Job& job, wire::ControlJob::What what) {
  std::string by = job.kept_by;
  if (what == wire::ControlJob::RELEASE || what == wire::ControlJob::RESUME) by.clear();
  const bool keeps = what == wire::ControlJob::HOLD || what == wire::ControlJob::SUSPEND;
  if (keeps && peer.user != job.info.user) by = peer.name;
  if (by == job.kept_by) return;
  job.kept_by = by;
  commits_->add(keep_setting(job.info.id, by.empty() ? std::nullopt : std::optional(by)));
}

Status Head::control(const Peer& peer, const wire::ControlJob& message) {
  const JobId id(message.job());
  Job* job = find(id);
  if (job == nullptr || job->ended) return not_active(id);
  Result<gang::Actions> actions = fail(Errc::Malformed, "unknown request");
  if (auto allowed = check_control(peer, *job, message); !allowed) return allowed;
  std::string_view name = "control";
  std::string value;
  switch (message.what()) {
    case wire::ControlJob::SUSPEND:
      name = "suspend";
      actions = cluster_.suspend(id, now());
      break;
    case wire::ControlJob::RESUME:
      name = "resume";
      actions = cluster_.resume(id, now());
      break;
    case wire::ControlJob::HOLD:
      name = "hold";
      actions = cluster_.hold(id, now());
      break;
    case wire::ControlJob::RELEASE:
      name = "release";
      actions = cluster_.release(id, now());
      break;
    case wire::ControlJob::SET_WEIGHT:
      name = "weight";
      value = std::to_string(message.weight());
      actions = cluster_.set_weight(id, message.weight(), now());
      break;
    case wire::ControlJob::SET_PRIORITY:
      name = "priority";
      value = std::to_string(message.priority());
      actions = cluster_.set_priority(id, message.priority(), now());
      break;
    default:
      break;
  }
  if (!actions) return actions.error();
  audit(peer, name, *job, value);
  tell_audit(peer, name, value, id);
  note_keeper(peer, *job, message.what());
  perform(std::move(*actions));
  const auto looked = view(id);
  const bool changes_request =
      message.what() != wire::ControlJob::SUSPEND && message.what() != wire::ControlJob::RESUME;
  if (looked && changes_request) {
    commits_->add(SaveResources{id, proto::to_wire(looked->request).SerializeAsString()});
  }
  return {};
}

}  // namespace score::head
