#include "scored/head/admin/job_change.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "proto/convert/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace score::head {
namespace {

constexpr std::array<std::string_view, 4> kQueueNames = {"exclusive", "high", "normal",
                                                         "urgent"};  // [base::Queue]

bool is_condition(JobKey key) {
  return key == JobKey::After || key == JobKey::Begin || key == JobKey::Deadline;
}

Status check_name(const std::string& name) {
  if (name.empty() || name.find('\0') != name.npos) {
    return fail(Errc::Malformed, "name: '{}' is not a name of a job", escape_terminal(name, 80));
  }
  if (name.size() <= limits::kMaxJobNameBytes) return {};
  return fail(Errc::TooLarge, "name: it takes {} bytes; at most {}", name.size(),
              limits::kMaxJobNameBytes);
}

std::string limit_text(Duration limit) {
  return limit == Duration(0) ? "none" : format_duration(limit);
}

std::string time_text(WallTime time) {
  return time == WallTime() ? "none" : format_wall(time);
}

std::string or_none(std::string text) {
  return text.empty() ? "none" : text;
}

std::string nodes_text(const ResourceRequest& request) {
  if (request.nodes == 0) return "none";
  if (request.most_nodes == 0) return std::to_string(request.nodes);
  return fmt::format("{}-{}", request.nodes, request.most_nodes);
}

std::string signal_text(const ResourceRequest& request) {
  if (request.limit_signal == 0) return "none";
  return fmt::format("{}{}@{}", request.limit_signal_script ? "B:" : "", request.limit_signal,
                     format_duration(request.limit_signal_before));
}

std::string after_text(const Conditions& conditions) {
  std::vector<std::string> parts;
  for (const Dependency& dependency : conditions.after) {
    parts.push_back(name_of(dependency));
  }
  if (conditions.singleton) parts.emplace_back("singleton");
  return or_none(fmt::format("{}", fmt::join(parts, conditions.any ? "?" : ",")));
}

std::string size_text(const ResourceRequest& r, JobKey key) {
  switch (key) {
    case JobKey::Nodes:
      return nodes_text(r);
    case JobKey::Tasks:
      return std::to_string(r.tasks);
    case JobKey::TasksPerNode:
      return r.tasks_per_node == 0 ? "none" : std::to_string(r.tasks_per_node);
    case JobKey::CpusPerTask:
      return std::to_string(r.cpus_per_task);
    case JobKey::Memory:
      return r.memory_per_node == Bytes(0) ? "none" : fmt::format("{}", r.memory_per_node);
    case JobKey::NodeList:
      return or_none(fmt::format("{}", fmt::join(r.only_nodes, ",")));
    case JobKey::Exclude:
      return or_none(fmt::format("{}", fmt::join(r.except_nodes, ",")));
    case JobKey::Constraint:
      return or_none(format_constraint(r.features));
    case JobKey::Gres:
      return or_none(format_generic(r.generic));
    default:
      return {};
  }
}

std::string value_text(const Requested& values, JobKey key) {
  const ResourceRequest& r = values.resources;
  switch (key) {
    case JobKey::Time:
      return limit_text(r.scheduled_limit);
    case JobKey::ElapsedTime:
      return limit_text(r.wall_limit);
    case JobKey::Queue:
      return std::string(kQueueNames.at(static_cast<std::size_t>(r.queue)));
    case JobKey::Name:
      return values.name;
    case JobKey::Requeue:
      return r.requeue == Requeue::Yes ? "yes" : "no";
    case JobKey::Signal:
      return signal_text(r);
    case JobKey::After:
      return after_text(values.conditions);
    case JobKey::Begin:
      return time_text(values.conditions.begin);
    case JobKey::Deadline:
      return time_text(values.conditions.deadline);
    case JobKey::Account:
      return or_none(r.account);
    case JobKey::Reservation:
      return or_none(r.reservation);
    case JobKey::Weight:
      return std::to_string(r.weight);
    case JobKey::Priority:
      return std::to_string(r.priority);
    default:
      return size_text(r, key);
  }
}

void apply_size(JobKey key, const ResourceRequest& wanted, ResourceRequest& request) {
  switch (key) {
    case JobKey::Nodes:
      request.nodes = wanted.nodes;
      request.most_nodes = wanted.most_nodes;
      return;
    case JobKey::Tasks:
      request.tasks = wanted.tasks;
      return;
    case JobKey::TasksPerNode:
      request.tasks_per_node = wanted.tasks_per_node;
      return;
    case JobKey::CpusPerTask:
      request.cpus_per_task = wanted.cpus_per_task;
      return;
    case JobKey::Memory:
      request.memory_per_node = wanted.memory_per_node;
      return;
    case JobKey::NodeList:
      request.only_nodes = wanted.only_nodes;
      return;
    case JobKey::Exclude:
      request.except_nodes = wanted.except_nodes;
      return;
    case JobKey::Constraint:
      request.features = wanted.features;
      return;
    case JobKey::Gres:
      request.generic = wanted.generic;
      return;
    default:
      return;
  }
}

void apply_key(JobKey key, const Requested& values, Requested& request) {
  const ResourceRequest& wanted = values.resources;
  ResourceRequest& resources = request.resources;
  switch (key) {
    case JobKey::Time:
      resources.scheduled_limit = wanted.scheduled_limit;
      return;
    case JobKey::ElapsedTime:
      resources.wall_limit = wanted.wall_limit;
      return;
    case JobKey::Queue:
      resources.queue = wanted.queue;
      return;
    case JobKey::Name:
      request.name = values.name;
      return;
    case JobKey::Requeue:
      resources.requeue = wanted.requeue == Requeue::Yes ? Requeue::Yes : Requeue::No;
      return;
    case JobKey::Signal:
      resources.limit_signal = wanted.limit_signal;
      resources.limit_signal_before = wanted.limit_signal_before;
      resources.limit_signal_script = wanted.limit_signal_script;
      return;
    case JobKey::After:
      request.conditions.after = values.conditions.after;
      request.conditions.any = values.conditions.any;
      request.conditions.singleton = values.conditions.singleton;
      return;
    case JobKey::Begin:
      request.conditions.begin = values.conditions.begin;
      return;
    case JobKey::Deadline:
      request.conditions.deadline = values.conditions.deadline;
      return;
    case JobKey::Account:
      resources.account = wanted.account;
      return;
    case JobKey::Reservation:
      resources.reservation = wanted.reservation;
      return;
    case JobKey::Weight:
      resources.weight = wanted.weight;
      return;
    case JobKey::Priority:
      resources.priority = wanted.priority;
      return;
    default:
      return apply_size(key, wanted, resources);
  }
}

bool is_raised(Duration before, Duration after) {
  return before > Duration(0) && (after == Duration(0) || after > before);
}

}  // namespace

std::string_view key_name(JobKey key) {
  return find_job_key(static_cast<std::uint32_t>(key))->name;
}

Result<JobChange> read_change(const wire::ChangeJob& message) {
  JobChange change;
  if (static_cast<std::size_t>(message.keys_size()) > job_keys().size()) {
    return fail(Errc::Malformed, "{} keys in one change", message.keys_size());
  }
  for (const std::uint32_t number : message.keys()) {
    const JobKeyRule* rule = find_job_key(number);
    if (rule == nullptr) return fail(Errc::Malformed, "this head has no key of number {}", number);
    if (std::ranges::find(change.keys, rule->key) != change.keys.end()) {
      return fail(Errc::Malformed, "{} is given twice", rule->name);
    }
    change.keys.push_back(rule->key);
  }
  if (change.keys.empty()) return fail(Errc::Malformed, "the change names no key");
  auto resources = proto::from_wire(message.resources());
  if (!resources) return resources.error();
  change.values.resources = std::move(*resources);
  auto conditions = unpack_conditions(message.conditions().SerializeAsString());
  if (!conditions) return conditions.error();
  change.values.conditions = std::move(*conditions);
  change.values.name = message.name();
  if (std::ranges::find(change.keys, JobKey::Name) != change.keys.end()) {
    if (auto sound = check_name(change.values.name); !sound) return sound.error();
  }
  return change;
}

Requested apply_change(const JobChange& change, std::span<const JobKey> keys, Requested request) {
  for (const JobKey key : keys) apply_key(key, change.values, request);
  return request;
}

std::string describe(const wire::ChangeJob& message) {
  const auto change = read_change(message);
  if (!change) return {};
  std::vector<std::string> parts;
  for (const JobKey key : change->keys) {
    parts.push_back(fmt::format("{}={}", key_name(key), value_text(change->values, key)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Status check_keys(const ChangedJob& job, std::span<const JobKey> keys) {
  for (const JobKey key : keys) {
    const JobKeyRule& rule = *find_job_key(static_cast<std::uint32_t>(key));
    if (job.has_place && !rule.may_run) {
      return fail(Errc::Denied,
                  "{}: job {} has started; only its limits, name, queue, weight, "
                  "priority, signal and requeue can be changed",
                  rule.name, job.id);
    }
    if (!is_condition(key)) continue;
    if (job.is_task) {
      return fail(Errc::Denied, "{}: a task waits with its array; change the whole array",
                  rule.name);
    }
    if (job.has_run || job.has_tasks) {
      return fail(Errc::Denied, "{}: job {} has been in the queue and waits for no condition again",
                  rule.name, job.id);
    }
  }
  return {};
}

Status check_lowered(const ResourceRequest& before, const ResourceRequest& after) {
  const bool is_time = is_raised(before.scheduled_limit, after.scheduled_limit);
  if (!is_time && !is_raised(before.wall_limit, after.wall_limit)) return {};
  return fail(Errc::Denied, "{}: only operators may raise a limit of a job that has started",
              key_name(is_time ? JobKey::Time : JobKey::ElapsedTime));
}

}  // namespace score::head
