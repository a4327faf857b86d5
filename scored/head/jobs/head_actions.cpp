// What gang::Cluster decided, carried out in its order. Actions can cause events that cause actions
// (a specification that cannot be read is a refusal): they are queued, never nested. When the queue
// is empty, jobs that changed are looked at once each: saved, shown, ended.
#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/text/hostlist.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/head.hpp"
#include "scored/journal/event.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace score::head {
namespace {

// Administrators search for nodes that take jobs again and for nodes that are lost.
void log_node(const gang::NodeView& node, const char* state) {
  const auto name = kv("node", node.info.name);
  const auto is = kv("state", state);
  const auto drained = kv("drained", node.drained);
  const auto reason = kv("reason", node.down_reason);
  if (node.state == gang::NodeState::Down)
    return report(Event::NodeDown, name, is, drained, reason);
  if (node.state == gang::NodeState::Up && !node.drained)
    return report(Event::NodeUp, name, is, drained, reason);
  log_info("change node", name, is, drained, reason);
}

// "node03 is down: lost", "node03 is up, but drained: new fans".
std::string state_text(const gang::NodeView& node, const char* state) {
  const auto because = [](const std::string& why) { return why.empty() ? "" : ": " + why; };
  std::string text = fmt::format("{} is {}{}", node.info.name, state, because(node.down_reason));
  if (!node.drained) return text;
  const bool is_up = node.state == gang::NodeState::Up;
  return text + (is_up ? ", but drained" : ", and drained") + because(node.drain_reason);
}

// The rank, or nothing.
std::string first_failed(const wire::JobStatus& status) {
  return status.failed_tasks_size() > 0 ? std::to_string(status.failed_tasks(0).rank()) : "";
}

}  // namespace

void Head::perform(gang::Actions actions) {
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
  if (std::exchange(performing_, true)) return;
  while (!actions_.empty() || !changed_.empty()) {
    if (!actions_.empty()) {
      gang::Action next = std::move(actions_.front());
      actions_.pop_front();
      perform_one(std::move(next));
    } else {
      const JobId job = *changed_.begin();
      changed_.erase(changed_.begin());
      refresh(job);
    }
  }
  performing_ = false;
  release_held();
  check_idle();
  wake_timer();
}

void Head::perform_one(gang::Action&& action) {
  if (auto* message = std::get_if<gang::SendToNode>(&action)) {
    send(message->node, std::move(message->message));
  } else if (const auto* job = std::get_if<gang::JobChanged>(&action)) {
    changed_.insert(job->job);
  } else if (const auto* node = std::get_if<gang::NodeChanged>(&action)) {
    const auto view = cluster_.node(node->node);
    if (!view) return;
    constexpr std::array<const char*, 4> kStates = {"unknown", "up", "suspect", "down"};
    const char* state = kStates.at(static_cast<std::size_t>(view->state));
    log_node(*view, state);
    EventAbout about;
    about.node = node->node;
    tell(monitor::EventKind::Node, state_text(*view, state), std::move(about));
    // What it says from now on is about jobs that are lost: it must say hello, and be told so.
    if (view->state == gang::NodeState::Down) {
      if (const auto connection = links_.link(node->node).connection) connection->close();
    }
  }
}

void Head::send(NodeId node, HeadToNode&& message) {
  if (auto* wanted = std::get_if<PrepareTasks>(&message)) return prepare(node, std::move(*wanted));
  if (const auto* kill = std::get_if<KillTasks>(&message)) kill_follows(kill->attempt);
  const bool waits =
      std::holds_alternative<StartTasks>(message) || std::holds_alternative<ForgetTasks>(message);
  if (waits) return hold({node, std::move(message)});
  const proto::OutFrame frame = proto::encode(message);
  links_.send(node, frame.type, frame.payload);
}

// ---- launching ----------------------------------------------------------------------------------

void Head::prepare(NodeId node, PrepareTasks&& message) {
  const AttemptId attempt = message.placed.attempt;
  Job* job = find(job_of(attempt));
  if (job == nullptr) return;
  auto looked = view(job->info.id);
  if (!looked) return;
  auto spec = spec_for(attempt, *job, *looked);
  if (!spec) {
    log_error("cannot launch job", kv("job", job->info.id), kv("err", spec.error()));
    Refused refused;
    refused.attempt = attempt;
    refused.exit_code = kExitError;
    refused.reason = "the head cannot read the job: " + spec.error().message();
    return perform(cluster_.node_says(node, refused, now()));
  }
  note_placement(*job, node, message.placed);
  message.spec = *spec;
  const proto::OutFrame frame = proto::encode(HeadToNode(std::move(message)));
  links_.send(node, frame.type, frame.payload);
}

// Encoded for the first node of the attempt and kept for the others, which follow at once.
Result<std::string> Head::spec_for(AttemptId attempt, Job& job, const gang::JobView& view) {
  if (spec_of_ == attempt) return spec_;
  auto stored = reader_.spec(job.info.id);
  if (!stored) return stored.error();
  wire::LaunchSpec spec;
  if (!spec.ParseFromString(*stored)) return fail(Errc::Malformed, "specification");
  spec.clear_node_names();
  job.nodes = view.nodes;
  job.progress.placement = {};
  job.progress.placement.attempt = attempt;
  job.progress.placement.tasks_on_node = view.tasks_on_node;
  job.progress.placement.cores.resize(view.nodes.size());
  for (const NodeId node : view.nodes) {
    spec.add_node_names(links_.name(node));
    job.progress.placement.nodes.push_back(links_.name(node));
  }
  streams_.place(job.info.id, attempt, view.nodes, view.tasks_on_node);
  spec_ = spec.SerializeAsString();
  spec_of_ = attempt;
  return spec_;
}

void Head::note_placement(Job& job, NodeId, const PlacedTasks& placed) {
  auto& cores = job.progress.placement.cores;
  if (placed.node_index < cores.size()) cores[placed.node_index] = placed.cores;
  changed_.insert(job.info.id);
}

// Output of an attempt that is being killed waits for nobody, or its nodes could not finish.
void Head::kill_follows(AttemptId attempt) {
  Job* job = find(job_of(attempt));
  if (job == nullptr || job->progress.placement.attempt != attempt) return;
  job->killed = attempt;
  streams_.release(job->info.id);
}

void Head::hold(HeldFrame frame) {
  held_.push_back(std::move(frame));
}

void Head::release_held() {
  if (held_.empty()) return;
  commits_->after([this, frames = std::exchange(held_, {})](const Status&) {
    for (const HeldFrame& held : frames) {
      if (const auto* start = std::get_if<StartTasks>(&held.message)) {
        const Job* job = find(job_of(start->attempt));
        if (job == nullptr || job->killed == start->attempt) continue;
      }
      const proto::OutFrame frame = proto::encode(held.message);
      links_.send(held.node, frame.type, frame.payload);
    }
  });
}

// ---- jobs that changed --------------------------------------------------------------------------

void Head::refresh(JobId id) {
  Job* job = find(id);
  if (job == nullptr || job->ended) return;
  const auto looked = view(id);
  if (!looked) return;
  note_state(*job, *looked);
  note_wait(*job, *looked);
  note_activity(*job, *looked);
  if (is_final(looked->state)) {
    end(*job, *looked);
    return;
  }
  save_progress(*job);
  tell_watchers(*job, *looked);
}

void Head::note_state(Job& job, const gang::JobView& view) {
  const JobState before = std::exchange(job.progress.state, view.state);
  job.progress.scheduled = view.scheduled;
  job.progress.ending = view.ending;
  job.progress.exit_code = view.ending ? view.exit_code : 0;
  job.progress.reasons = view.ending ? view.reasons : std::vector<std::string>();
  if (view.restarts > job.progress.restarts) note_requeue(job, view);
  if (view.state == before) return;
  log_info("change job", kv("job", job.info.id),
           kv("state", fmt::format("{}->{}", name_of(before), name_of(view.state))),
           kv("cause", view.reasons.empty() ? "" : view.reasons.front()));
  if (!is_final(view.state)) note_event(job, wall_now(), event_of(job, view, before));
  const std::string why = view.reasons.empty() ? "" : view.reasons.front();
  tell_job(job, name_of(shown_state(job, view.state)),
           job.is_being_cancelled ? job.why_ended : why);
  if (view.state != JobState::Pending) deadlines_.clear(job.info.id, DeadlineKind::Immediate);
  if (view.state == JobState::Running && job.progress.started == WallTime()) {
    job.progress.started = wall_now();
    job.progress.start_mark = now();
    job_waits_.add(std::max(job.progress.started - job.info.submitted, Duration(0)));
    report(Event::JobStarted, kv("job", job.info.id), kv("user", users_.name(job.info.user, now())),
           kv("nodes", compress_hostlist(job.progress.placement.nodes)),
           kv("slot", view.slot ? std::to_string(view.slot->value()) : std::string()));
    streams_.start_input(job.info.id);
  }
  if (view.state == JobState::Completing) streams_.release(job.info.id);
}

// What the lost attempt left behind goes; who is about to cancel the job need not wait for another.
void Head::note_requeue(Job& job, const gang::JobView& view) {
  const JobId id = job.info.id;
  job.progress.restarts = view.restarts;
  job.progress.started = WallTime();
  job.progress.start_mark = TimePoint();
  networks_.close(job.progress.placement.attempt);
  streams_.requeue(id);
  const std::string why = fmt::format("requeued, restart {}: {}", view.restarts, view.lost);
  note_event(job, wall_now(), why);
  tell_job(job, "requeued", view.lost);
  log_notice("requeue job", kv("job", id), kv("restart", view.restarts), kv("reason", view.lost));
  if (job.is_being_cancelled) deadlines_.set(id, DeadlineKind::Kill, now());
}

void Head::note_wait(Job& job, const gang::JobView& view) {
  std::string reasons;
  if (view.state == JobState::Pending) reasons = joined(view.reasons);
  if (reasons == job.last_wait) return;
  job.last_wait = reasons;
  if (!reasons.empty()) note_event(job, wall_now(), "waits: " + reasons);
}

void Head::note_activity(Job& job, const gang::JobView& view) {
  const gang::JobActivity before = std::exchange(job.activity, view.activity);
  if (view.activity == before) return;
  log_info("change job", kv("job", job.info.id), kv("activity", name_of(view.activity)));
  if (view.activity == gang::JobActivity::Deadlocked) {
    log_notice("deadlock", kv("job", job.info.id), kv("user", job.info.user));
    note_event(job, wall_now(), "deadlocked: every task waits for a message");
    tell_job(job, "deadlocked", "every task waits for a message");
  }
}

void Head::save_progress(Job& job) {
  if (job.saved == job.progress) return;
  job.saved = job.progress;
  commits_->add(SaveProgress{job.info.id, job.progress});
}

// Reasons are told each time they change, and nothing else is told twice.
void Head::tell_watchers(Job& job, const gang::JobView& view) {
  if (!streams_.has_clients(job.info.id)) return;
  std::string news(name_of(view.state));
  if (view.activity == gang::JobActivity::Deadlocked) news += ", deadlocked";
  for (const std::string& reason : view.reasons) (news += '\n') += reason;
  if (news == job.last_news) return;
  job.last_news = std::move(news);
  streams_.news(job.info.id, status_of(job, view));
}

void Head::end(Job& job, const gang::JobView& view) {
  const JobId id = job.info.id;
  job.progress.state = shown_state(job, view.state);
  wire::JobStatus status = status_of(job, view);
  note_event(job, WallTime(Duration(status.ended_wall_ns())), end_event(status));
  add_events(job, status);
  job.ended = status;
  --active_;
  count_out(job.info.user);
  deadlines_.clear(id);
  report(Event::JobEnded, kv("job", id), kv("user", users_.name(job.info.user, now())),
         kv("state", name_of(job.progress.state)), kv("exit", status.exit_code()),
         kv("rank", first_failed(status)),
         kv("reason", status.reasons_size() > 0 ? status.reasons(0) : std::string()));
  lately_ended_.emplace_back(now(), status);
  while (lately_ended_.size() > 100 || now() - lately_ended_.front().first > kShownAfterEnd) {
    lately_ended_.pop_front();
  }
  SaveEnd saved;
  saved.id = id;
  saved.progress = job.progress;
  saved.exit_code = status.exit_code();
  saved.ended = WallTime(Duration(status.ended_wall_ns()));
  saved.status = status.SerializeAsString();
  commits_->add(std::move(saved), [this, id](const Status&) {
    cluster_.forget(id);
    if (Job* stored = find(id)) stored->end_is_stored = true;
    drop_if_done(id);
  });
  if (job.is_being_cancelled) commits_->add(cancel_setting(id, std::nullopt));
  if (!job.kept_by.empty()) commits_->add(keep_setting(id, std::nullopt));
  deadlines_.set(id, DeadlineKind::Drop, now() + config_.front_end_grace);
  networks_.close(job.progress.placement.attempt);
  streams_.finish(id, std::move(status));
}

// An ended job stays until its end is on disk and its output was fetched or nobody came for it.
void Head::drop_if_done(JobId id) {
  const Job* job = find(id);
  if (job == nullptr || !job->ended || !job->end_is_stored) return;
  if (deadlines_.has(id, DeadlineKind::Drop)) return;
  if (streams_.has_clients(id) && !streams_.is_delivered(id)) {
    deadlines_.set(id, DeadlineKind::Drop, now() + config_.front_end_grace);
    return;
  }
  streams_.close(id);
  jobs_.erase(id);
}

wire::JobStatus Head::status_of(const Job& job, const gang::JobView& view) {
  return make_status(
      job, {view, users_.name(job.info.user, now()), cluster_.config().quantum, wall_now()});
}

}  // namespace score::head
