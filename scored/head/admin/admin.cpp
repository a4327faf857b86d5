// A command goes through four steps: permit, prepare, audit, effect. The audit stands between the
// cluster's consent and the consequences, so that it comes before what it caused in every record.
#include "scored/head/admin/admin.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/store/settings.hpp"
#include "scored/journal/event.hpp"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

namespace score::head {
namespace {

constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

const Peer kConfiguration{UserId(0), proto::Role::Root, "configuration", "file"};

std::string nodes_of(const AdminCommand& command) {
  const auto* drain = std::get_if<DrainNodes>(&command);
  return drain == nullptr ? std::string() : fmt::format("{}", fmt::join(drain->nodes, ","));
}

}  // namespace

void Admin::execute(const Peer& peer, const AdminCommand& command, const Reply& reply) {
  if (auto permitted = permit(peer, command); !permitted) return reply(permitted.error());
  const auto effect = std::visit([&](const auto& one) { return prepare(peer, one); }, command);
  if (!effect) return reply(effect.error());
  audit(peer, command);
  (*effect)();
  answer(command, reply);
}

// ---- permission ---------------------------------------------------------------------------------

// Towards a job its user is its owner; operators and root stay what they are.
Status Admin::permit(const Peer& peer, const AdminCommand& command) {
  proto::Role role = peer.role;
  const JobId job = job_of(command);
  if (job != JobId()) {
    const auto owner = parts_.queries.owner(job);
    if (!owner) return owner.error();
    if (role == proto::Role::OtherUser && *owner == peer.user) role = proto::Role::Owner;
  }
  if (proto::may_send(role, frame_of(command))) return {};
  return refuse(peer, command);
}

Error Admin::refuse(const Peer& peer, const AdminCommand& command) {
  const std::string_view action = action_of(command);
  const JobId job = job_of(command);
  const std::string number = job == JobId() ? std::string() : fmt::format("{}", job);
  if (refusals_.allow(now())) {
    report(Event::CommandRefused, kv("user", peer.name), kv("action", action), kv("job", number),
           kv("via", peer.via), kv("suppressed", refusals_.take_suppressed()));
  }
  const proto::FrameType type = frame_of(command);
  if (proto::may_send(proto::Role::Owner, type)) {
    return fail(Errc::Denied, "only its owner and operators may {} job {}", action, number);
  }
  const bool is_for_operators = proto::may_send(proto::Role::Operator, type);
  return fail(Errc::Denied, "only {} may {}", is_for_operators ? "operators" : "root", action);
}

// ---- audit and answer ---------------------------------------------------------------------------

void Admin::audit(const Peer& peer, const AdminCommand& command) {
  const JobId job = job_of(command);
  const std::string action(action_of(command));
  const std::string value = escape_terminal(value_of(command), limits::kMaxErrorTextBytes);
  const std::string nodes = nodes_of(command);
  std::vector<EventValue> values = {{"user", peer.name}, {"action", action}};
  if (job != JobId()) values.push_back({"job", fmt::format("{}", job)});
  if (!nodes.empty()) values.push_back({"node", nodes});
  if (!value.empty()) values.push_back({"value", value});
  values.push_back({"via", peer.via});
  const bool sets_quantum = std::holds_alternative<SetQuantum>(command);
  report_values(sets_quantum ? Event::QuantumSet : Event::CommandDone, values);

  const std::string with_value = value.empty() ? action : action + " " + value;
  if (Job* about = parts_.jobs.find(job)) {
    note_event(*about, wall_now(), fmt::format("{} requested by {}", with_value, peer.name));
  }
  EventFeed::About about;
  std::string text = action;
  if (job != JobId()) {
    about.job = job;
    text += fmt::format(" job {}", job);
  }
  about.public_text = text;
  for (const std::string& more : {escape_terminal(nodes, 256), value}) {
    if (!more.empty()) text += " " + more;
  }
  parts_.feed.add(monitor::EventKind::Admin, peer.name + ": " + text, std::move(about));
}

void Admin::answer(const AdminCommand& command, const Reply& reply) {
  const auto* cancel = std::get_if<CancelJob>(&command);
  if (cancel != nullptr && cancel->wait) {
    return parts_.life.when_recorded(cancel->job, [reply] { reply(std::string()); });
  }
  if (std::holds_alternative<ShutDown>(command)) {
    shutdown_reply_ = reply;
    return check_shutdown();
  }
  reply(reply_of(command));
}

// ---- the cluster --------------------------------------------------------------------------------

Result<Admin::Effect> Admin::prepare(const Peer&, const SetQuantum& command) {
  auto actions = parts_.runner.cluster().set_quantum(command.quantum, now());
  if (!actions) return actions.error();
  return [this, quantum = command.quantum, actions = std::move(*actions)] {
    parts_.commits.add(quantum_setting(quantum));
    parts_.runner.perform(actions);
  };
}

Result<Admin::Effect> Admin::prepare(const Peer&, const SetSlots& command) {
  auto actions = parts_.runner.cluster().set_max_slots(command.slots, now());
  if (!actions) return actions.error();
  return [this, slots = command.slots, actions = std::move(*actions)] {
    parts_.commits.add(slots_setting(slots));
    parts_.runner.perform(actions);
  };
}

Result<Admin::Effect> Admin::prepare(const Peer&, const SetIdleDetection& command) {
  return [this, on = command.on] {
    parts_.commits.add(idle_setting(on));
    parts_.runner.perform(parts_.runner.cluster().set_idle_detection(on, now()));
  };
}

Result<Admin::Effect> Admin::prepare(const Peer&, const SetFill& command) {
  auto actions = parts_.runner.cluster().set_fill(command.on, now());
  if (!actions) return actions.error();
  return [this, on = command.on, actions = std::move(*actions)] {
    parts_.commits.add(fill_setting(on));
    parts_.runner.perform(actions);
  };
}

Result<Admin::Effect> Admin::prepare(const Peer&, const DrainNodes& command) {
  std::vector<NodeId> nodes;
  for (const std::string& list : command.nodes) {
    const auto names = expand_hostlist(list);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto node = parts_.links.find(name);
      if (!node) return node.error();
      nodes.push_back(*node);
    }
  }
  if (nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  const std::string reason = escape_terminal(command.reason, limits::kMaxErrorTextBytes);
  return [this, nodes = std::move(nodes), reason, resume = command.resume] {
    gang::Cluster& cluster = parts_.runner.cluster();
    for (const NodeId node : nodes) {
      auto actions = resume ? cluster.resume_node(node, now()) : cluster.drain(node, reason, now());
      if (!actions) continue;  // no such node any more
      parts_.commits.add(
          drain_setting(parts_.links.name(node), resume ? std::nullopt : std::optional(reason)));
      parts_.runner.perform(std::move(*actions));
    }
  };
}

Result<Admin::Effect> Admin::prepare(const Peer&, const ReloadConfiguration&) {
  if (auto reloaded = parts_.daemon.reload(); !reloaded) return reloaded.error();
  return [] {};
}

Result<Admin::Effect> Admin::prepare(const Peer&, const ShutDown&) {
  return [this] {
    parts_.submissions.close();
    shutdown_deadline_ = now() + limits::kStopDeadline;
    parts_.alarm.at(shutdown_deadline_);
    for (const JobId id : parts_.jobs.active_ids()) parts_.life.kill(id, gang::EndCause::Shutdown);
  };
}

void Admin::check_shutdown() {
  const auto finish = [this] {
    if (!shutdown_reply_) return;
    shutdown_deadline_.reset();
    std::exchange(shutdown_reply_, nullptr)(reply_of(ShutDown{}));
    parts_.daemon.exit();
  };
  if (!shutdown_reply_) return;
  if (shutdown_deadline_ && *shutdown_deadline_ <= now()) return finish();
  if (parts_.jobs.active() == 0) parts_.commits.after([finish](const Status&) { finish(); });
}

// ---- jobs ---------------------------------------------------------------------------------------

Result<Job*> Admin::active_job(JobId id) {
  Job* job = parts_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  return job;
}

Result<Admin::Effect> Admin::prepare(const Peer&, const SignalJob& command) {
  if (command.signal < 1 || command.signal > SIGRTMAX) {
    return fail(Errc::Malformed, "signal {} does not exist", command.signal);
  }
  if (auto job = active_job(command.job); !job) return job.error();
  auto actions = parts_.runner.cluster().signal(command.job, command.signal, now());
  if (!actions) return actions.error();
  return [this, actions = std::move(*actions)] { parts_.runner.perform(actions); };
}

Result<Admin::Effect> Admin::prepare(const Peer& peer, const CancelJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  const bool is_owner = peer.user == (*job)->info.user;
  const auto cause = is_owner ? gang::EndCause::User : gang::EndCause::Operator;
  const Duration grace =
      std::min<Duration>(command.grace.value_or(parts_.config.kill_grace), kLongestWait);
  return [this, job = *job, by = peer.name, cause, grace] {
    const bool was_ending = job->ended_by.has_value();
    parts_.life.terminate(*job, cause, "cancelled by " + by, grace);
    if (!was_ending && job->ended_by) parts_.commits.add(cancel_setting(job->info.id, by));
  };
}

Status Admin::permit_control(const Peer& peer, const Job& job, const ControlJob& command) {
  const bool lets_go =
      command.what == wire::ControlJob::RELEASE || command.what == wire::ControlJob::RESUME;
  if (lets_go && !job.kept_by.empty() && peer.role == proto::Role::OtherUser) {
    return fail(Errc::Denied, "{} has held or suspended job {}; only operators may let it continue",
                job.kept_by, job.info.id);
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

Result<gang::Actions> Admin::control(const ControlJob& command) {
  gang::Cluster& cluster = parts_.runner.cluster();
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
    default:
      return fail(Errc::Malformed, "unknown request");
  }
}

Result<Admin::Effect> Admin::prepare(const Peer& peer, const ControlJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  if (auto allowed = permit_control(peer, **job, command); !allowed) return allowed.error();
  auto actions = control(command);
  if (!actions) return actions.error();
  return [this, job = *job, peer, command, actions = std::move(*actions)] {
    note_keeper(peer, *job, command.what);
    parts_.runner.perform(actions);
    const bool changes_request =
        command.what != wire::ControlJob::SUSPEND && command.what != wire::ControlJob::RESUME;
    const auto view = parts_.runner.view(command.job);
    if (!view || !changes_request) return;
    parts_.commits.add(
        SaveResources{command.job, proto::to_wire(view->request).SerializeAsString()});
  };
}

// What an operator holds or suspends of another's is not for its owner to release.
void Admin::note_keeper(const Peer& peer, Job& job, ControlJob::What what) {
  std::string by = job.kept_by;
  if (what == wire::ControlJob::RELEASE || what == wire::ControlJob::RESUME) by.clear();
  const bool keeps = what == wire::ControlJob::HOLD || what == wire::ControlJob::SUSPEND;
  if (keeps && peer.user != job.info.user) by = peer.name;
  if (by == job.kept_by) return;
  job.kept_by = by;
  parts_.commits.add(keep_setting(job.info.id, by.empty() ? std::nullopt : std::optional(by)));
}

// ---- configuration ------------------------------------------------------------------------------

Status Admin::add_node(const std::string& name) {
  return parts_.runner.cluster().add_node(parts_.links.add(name), name);
}

Status Admin::change(const AdminCommand& command) {
  Status status;
  execute(kConfiguration, command, [&status](const Result<std::string>& reply) {
    if (!reply) status = reply.error();
  });
  return status;
}

Status Admin::reconfigure(HeadConfig wanted) {
  HeadConfig& config = parts_.config;
  if (auto possible = check_reload(config, wanted); !possible) return possible;
  for (const std::string& name : wanted.nodes) {
    if (parts_.links.has(name)) continue;
    if (auto added = add_node(name); !added) return added;
    log_notice("add node", kv("node", name));
  }
  if (wanted.quantum != config.quantum) {
    if (auto set = change(SetQuantum{wanted.quantum}); !set) return set;
  }
  if (wanted.slots != config.slots) {
    if (auto set = change(SetSlots{wanted.slots}); !set) return set;
  }
  if (wanted.idle_detection != config.idle_detection) {
    if (auto set = change(SetIdleDetection{wanted.idle_detection}); !set) return set;
  }
  if (wanted.fill != config.fill) {
    if (auto set = change(SetFill{wanted.fill}); !set) return set;
  }
  parts_.runner.perform(parts_.runner.cluster().set_fill_queues(wanted.fill_queues, now()));
  parts_.networks.set_channels(wanted.network.channels);
  parts_.runner.cluster().set_max_requeues(wanted.max_requeues);
  parts_.runner.cluster().set_overcommit(wanted.overcommit);
  parts_.users.set_rule(wanted.operators);
  parts_.users.set_exempt(wanted.limits.exempt);
  set_log_level(wanted.log_level);
  config = std::move(wanted);
  return {};
}

}  // namespace score::head
