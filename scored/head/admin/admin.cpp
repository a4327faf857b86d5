// A command goes through six steps: permit, check, store, prepare, audit, effect. It is stored
// before it is carried out, so a confirmed change is never lost and a change that cannot be stored
// never happens. The cluster keeps running while the command is being stored, so prepare() asks the
// cluster again: the job may have ended. The audit comes between prepare and effect, so in every
// record it precedes the consequences.
#include "scored/head/admin/admin.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/store/settings.hpp"
#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

namespace score::head {
namespace {

constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

const Peer kConfiguration{UserId(0), proto::Role::Root, "configuration", "file"};

constexpr std::size_t kMaxWaiting = 256;  // commands per job, or for the cluster

std::string packed(const ResourceRequest& request) {
  return proto::to_wire(request).SerializeAsString();
}

std::string shown_reason(const DrainNodes& command) {
  return escape_terminal(command.reason, limits::kMaxErrorTextBytes);
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
    default:
      return std::nullopt;
  }
}

struct WantedSetting {
  Setting setting;
  SettingValue value;
};

Result<WantedSetting> read_change(const ChangeSetting& command) {
  const SettingRule* rule = find_setting(command.name);
  if (rule == nullptr) {
    return fail(Errc::NotFound, "no setting '{}'", escape_terminal(command.name, 80));
  }
  const auto value = parse_setting(*rule, command.value);
  if (!value) return value.error();
  return WantedSetting{rule->setting, *value};
}

// Returns the settings of the configuration file that have changed.
std::vector<ChangeSetting> changes_between(const Settings& before, const Settings& after) {
  std::vector<ChangeSetting> changes;
  for (const SettingRule& rule : settings()) {
    const SettingValue value = after[rule.setting];
    if (value == before[rule.setting]) continue;
    changes.push_back({std::string(rule.name), format_setting(rule, value)});
  }
  return changes;
}

Permissions::Request request_of(const AdminCommand& command) {
  Permissions::Request request{
      .type = frame_of(command), .job = job_of(command), .action = action_of(command)};
  if (const auto* signal = std::get_if<SignalJob>(&command)) request.signal = signal->signal;
  return request;
}

// Returns the operator who holds or has suspended a job of another user; empty if there is none.
std::string keeper_after(const Peer& peer, const Job& job, ControlJob::What what) {
  if (what == wire::ControlJob::RELEASE || what == wire::ControlJob::RESUME) return {};
  const bool keeps = what == wire::ControlJob::HOLD || what == wire::ControlJob::SUSPEND;
  return keeps && peer.user != job.info.user ? peer.name : job.kept_by.str();
}

std::string drained_nodes(const AdminCommand& command) {
  const auto* drain = std::get_if<DrainNodes>(&command);
  return drain == nullptr ? std::string() : fmt::format("{}", fmt::join(drain->nodes, ","));
}

}  // namespace

void Admin::execute(const Peer& peer, const AdminCommand& command, const Reply& reply) {
  if (auto permitted = permissions_.check(peer, request_of(command)); !permitted) {
    return reply(permitted.error());
  }
  const JobId line = job_of(command);
  std::deque<Asked>& asked = asked_[line];
  if (asked.size() >= kMaxWaiting) {
    return reply(fail(Errc::Busy, "too many changes at once; try again"));
  }
  asked.push_back({peer, command, reply});
  auto* reserve = std::get_if<ReserveNodes>(&asked.back().command);
  if (reserve != nullptr && reserve->wanted.name().empty()) {
    reserve->wanted.set_name(parts_.reservations.free_name());
  }
  if (asked.size() == 1) begin(line);
}

// ---- order of commands --------------------------------------------------------------------------

void Admin::begin(JobId line) {
  const Asked& asked = asked_.at(line).front();
  auto changes = std::visit([&](const auto& one) { return check(asked.peer, one); }, asked.command);
  if (!changes) return finish(line, changes.error());
  if (changes->empty()) return finish(line, {});
  head_.commits.ask(std::move(*changes), [this, line](const Status& stored) {
    if (stored) return finish(line, {});
    store_as_it_is(asked_.at(line).front().command, stored);
    finish(line, stored.error().with_context("cannot store the change; nothing was changed"));
  });
}

void Admin::finish(JobId line, const Status& stored) {
  const auto found = asked_.find(line);
  const Asked asked = std::move(found->second.front());
  stored ? carry_out(asked) : asked.reply(stored.error());
  found->second.pop_front();
  if (!found->second.empty()) return begin(line);
  asked_.erase(found);
}

void Admin::carry_out(const Asked& asked) {
  const auto effect =
      std::visit([&](const auto& one) { return prepare(asked.peer, one); }, asked.command);
  if (!effect) {
    store_as_it_is(asked.command, {});
    return asked.reply(effect.error());
  }
  audit(asked.peer, asked.command);
  (*effect)();
  answer(asked.command, asked.reply);
}

void Admin::store_as_it_is(const AdminCommand& command, const Status& stored) {
  const auto* reserve = std::get_if<ReserveNodes>(&command);
  if (reserve != nullptr && stored) {
    return head_.commits.add(reserve_setting(reserve->wanted.name(), std::nullopt));
  }
  const auto* control = std::get_if<ControlJob>(&command);
  if (control == nullptr) return;
  const auto job = active_job(control->job);
  if (!job) return;
  if ((*job)->asked_state) return parts_.life.answered(**job, stored);
  if (!stored) return;
  head_.commits.add(keep_setting(control->job, (*job)->kept_by));
  if (const auto view = head_.runner.view(control->job)) {
    head_.commits.add(SaveResources{control->job, packed(asked_request(**job, *view))});
  }
}

// ---- audit and answer ---------------------------------------------------------------------------

void Admin::audit(const Peer& peer, const AdminCommand& command) {
  const JobId job = job_of(command);
  const std::string action(action_of(command));
  const std::string value = escape_terminal(value_of(command), limits::kMaxErrorTextBytes);
  const std::string nodes = drained_nodes(command);
  std::vector<EventValue> values = {{"user", peer.name}, {"action", action}};
  if (job != JobId()) values.push_back({"job", fmt::format("{}", job)});
  if (!nodes.empty()) values.push_back({"node", nodes});
  if (!value.empty()) values.push_back({"value", value});
  values.push_back({"via", peer.via});
  const auto* setting = std::get_if<ChangeSetting>(&command);
  const bool sets_quantum = setting != nullptr && setting->name == rule_of(Setting::Quantum).name;
  report_values(sets_quantum ? Event::QuantumSet : Event::CommandDone, values);

  const std::string with_value = value.empty() ? action : action + " " + value;
  if (Job* about = head_.jobs.find(job)) {
    note_event(*about, wall_now(),
               event_text(fmt::format("{} requested by {}", with_value, peer.name)));
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
  head_.feed.add(monitor::EventKind::Admin, peer.name + ": " + text, std::move(about));
}

void Admin::answer(const AdminCommand& command, const Reply& reply) {
  const auto* cancel = std::get_if<CancelJob>(&command);
  if (cancel != nullptr && cancel->wait) return answer_cancel(*cancel, reply);
  if (std::holds_alternative<ShutDown>(command)) {
    shutdown_reply_ = reply;
    return check_shutdown();
  }
  reply(reply_of(command));
}

// Answers when the last of the cancelled jobs is recorded.
void Admin::answer_cancel(const CancelJob& command, const Reply& reply) {
  if (command.tasks.empty()) {
    return parts_.life.when_recorded(command.job, [reply] { reply(std::string()); });
  }
  const auto jobs = parts_.arrays.jobs(command.job, command.tasks);
  const auto left = std::make_shared<std::size_t>(jobs.size());
  if (jobs.empty()) return reply(std::string());
  for (const JobId job : jobs) {
    parts_.life.when_recorded(job, [reply, left] {
      if (--*left == 0) reply(std::string());
    });
  }
}

// ---- the cluster --------------------------------------------------------------------------------

Result<Admin::Effect> Admin::effect_of(Result<gang::Actions> actions) {
  if (!actions) return actions.error();
  return [this, actions = std::move(*actions)] { head_.runner.perform(actions); };
}

Result<Admin::Changes> Admin::check(const Peer&, const ChangeSetting& command) {
  const auto wanted = read_change(command);
  if (!wanted) return wanted.error();
  if (auto possible = head_.runner.cluster().check(wanted->setting, wanted->value); !possible) {
    return possible.error();
  }
  return Changes{value_setting(wanted->setting, wanted->value)};
}

Result<Admin::Effect> Admin::prepare(const Peer&, const ChangeSetting& command) {
  const auto wanted = read_change(command);
  if (!wanted) return wanted.error();
  return effect_of(head_.runner.cluster().set(wanted->setting, wanted->value, now()));
}

Result<std::vector<NodeId>> Admin::nodes_of(const DrainNodes& command) const {
  std::vector<NodeId> nodes;
  for (const std::string& list : command.nodes) {
    const auto names = expand_hostlist(list);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto node = head_.links.find(name);
      if (!node) return node.error();
      nodes.push_back(*node);
    }
  }
  if (nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  return nodes;
}

Result<Admin::Changes> Admin::check(const Peer&, const DrainNodes& command) {
  const auto nodes = nodes_of(command);
  if (!nodes) return nodes.error();
  Changes changes;
  for (const NodeId node : *nodes) {
    changes.emplace_back(
        drain_setting(head_.links.name(node),
                      command.resume ? std::nullopt : std::optional(shown_reason(command))));
  }
  return changes;
}

Result<Admin::Effect> Admin::prepare(const Peer&, const DrainNodes& command) {
  auto nodes = nodes_of(command);
  if (!nodes) return nodes.error();
  return [this, nodes = std::move(*nodes), reason = shown_reason(command), command] {
    gang::Cluster& cluster = head_.runner.cluster();
    for (const NodeId node : nodes) {
      auto actions =
          command.resume ? cluster.resume_node(node, now()) : cluster.drain(node, reason, now());
      if (actions) head_.runner.perform(std::move(*actions));
    }
  };
}

Result<Admin::Changes> Admin::check(const Peer&, const ReserveNodes& command) {
  const auto booking = parts_.reservations.plan(command.wanted, command.ends_jobs);
  if (!booking) return booking.error();
  return Changes{reserve_setting(booking->name, pack_booking(*booking))};
}

// Plans again, because jobs may have been placed on these nodes in the meantime.
Result<Admin::Effect> Admin::prepare(const Peer&, const ReserveNodes& command) {
  auto booking = parts_.reservations.plan(command.wanted, command.ends_jobs);
  if (!booking) return booking.error();
  return [this, booking = std::move(*booking)] { parts_.reservations.make(booking); };
}

Result<Admin::Changes> Admin::check(const Peer&, const RemoveReservation& command) {
  if (auto known = parts_.reservations.check_removal(command.name); !known) return known.error();
  return Changes{reserve_setting(command.name, std::nullopt)};
}

Result<Admin::Effect> Admin::prepare(const Peer&, const RemoveReservation& command) {
  return [this, name = command.name] { parts_.reservations.remove(name); };
}

Result<Admin::Changes> Admin::check(const Peer&, const ShutDown&) {
  return Changes();
}

Result<Admin::Effect> Admin::prepare(const Peer&, const ShutDown&) {
  return [this] {
    parts_.submissions.close();
    shutdown_deadline_ = now() + limits::kStopDeadline;
    head_.alarm.at(shutdown_deadline_);
    for (const JobId id : head_.jobs.active_ids()) parts_.life.kill(id, gang::EndCause::Shutdown);
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
  if (head_.jobs.active() == 0) head_.commits.after([finish](const Status&) { finish(); });
}

// ---- jobs ---------------------------------------------------------------------------------------

Result<Job*> Admin::active_job(JobId id) {
  Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  return job;
}

Result<Admin::Changes> Admin::check(const Peer&, const SignalJob& command) {
  if (command.signal < 1 || command.signal > SIGRTMAX) {
    return fail(Errc::Malformed, "signal {} does not exist", command.signal);
  }
  if (auto job = active_job(command.job); !job) return job.error();
  return Changes();
}

Result<Admin::Effect> Admin::prepare(const Peer&, const SignalJob& command) {
  return effect_of(head_.runner.cluster().signal(command.job, command.signal, now()));
}

// A job that is already ending has its first cause on disk, so nothing more is stored.
Result<Admin::Changes> Admin::check(const Peer& peer, const CancelJob& command) {
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

Result<Admin::Effect> Admin::prepare(const Peer& peer, const CancelJob& command) {
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

Status Admin::permit_control(const Peer& peer, const Job& job, const ControlJob& command) {
  const bool lets_go =
      command.what == wire::ControlJob::RELEASE || command.what == wire::ControlJob::RESUME;
  if (lets_go && !job.kept_by.empty() && peer.role == proto::Role::OtherUser) {
    return permissions_.refuse(
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

Result<gang::Actions> Admin::control(Job& job, const ControlJob& command) {
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
    default:
      return fail(Errc::Malformed, "unknown request");
  }
}

// A job that an operator holds or has suspended cannot be released by its owner.
Result<Admin::Changes> Admin::check(const Peer& peer, const ControlJob& command) {
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

Result<Admin::Effect> Admin::prepare(const Peer& peer, const ControlJob& command) {
  const auto job = active_job(command.job);
  if (!job) return job.error();
  auto actions = control(**job, command);
  if (!actions) return actions.error();
  return [this, job = *job, peer, command, actions = std::move(*actions)] {
    job->kept_by = keeper_after(peer, *job, command.what);
    head_.runner.perform(actions);
    if (job->asked_state) parts_.life.answered(*job, {});
  };
}

// ---- configuration ------------------------------------------------------------------------------

Status Admin::add_node(const std::string& name) {
  return head_.runner.cluster().add_node(head_.links.add(name), name);
}

Result<Admin::Changes> Admin::check(const Peer&, const ReloadConfiguration&) {
  auto wanted = parts_.daemon.read_configuration();
  if (!wanted) return wanted.error();
  auto changes = check_file(*wanted);
  if (changes) wanted_ = std::move(*wanted);
  return changes;
}

Result<Admin::Effect> Admin::prepare(const Peer&, const ReloadConfiguration&) {
  return [this] { take_file(*std::exchange(wanted_, std::nullopt)); };
}

Result<Admin::Changes> Admin::check_file(const HeadConfig& wanted) {
  const HeadConfig& config = parts_.config;
  if (auto possible = check_reload(config, wanted); !possible) return possible.error();
  Changes changes;
  for (const ChangeSetting& change : changes_between(config.settings, wanted.settings)) {
    auto one = check(kConfiguration, change);
    if (!one) return one.error();
    changes.insert(changes.end(), one->begin(), one->end());
  }
  return changes;
}

void Admin::change(const ChangeSetting& command) {
  const auto effect = prepare(kConfiguration, command);
  if (!effect) return log_error("Cannot apply a changed setting", kv("err", effect.error()));
  audit(kConfiguration, command);
  (*effect)();
}

void Admin::take_file(HeadConfig wanted) {
  HeadConfig& config = parts_.config;
  for (const std::string& name : wanted.nodes) {
    if (head_.links.has(name)) continue;
    if (auto added = add_node(name); !added) {
      log_error("Cannot add node", kv("node", name), kv("err", added.error()));
      continue;
    }
    log_notice("Added node", kv("node", name));
  }
  for (const ChangeSetting& each : changes_between(config.settings, wanted.settings)) change(each);
  head_.runner.perform(head_.runner.cluster().set_fill_queues(wanted.fill_queues, now()));
  parts_.networks.set_channels(wanted.network.channels);
  head_.users.set_rule(wanted.operators);
  head_.users.set_exempt(wanted.limits.exempt);
  head_.users.set_account_groups(wanted.accounts.groups());
  set_log_level(wanted.log_level);
  config = std::move(wanted);
  parts_.shares.reload();
}

}  // namespace score::head
