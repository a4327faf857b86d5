#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/path_pattern.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/field_check.hpp"

#include <algorithm>
#include <csignal>
#include <set>
#include <sys/resource.h>

namespace score::proto {

namespace limits = base::limits;
using base::Result;

namespace {

constexpr std::int32_t kFirstWireCode = 100;
constexpr std::int32_t kFirstErrno = 1000;
constexpr std::int32_t kLastErrno = kFirstErrno + 4095;
constexpr std::int64_t kStdinToAll = -1;
constexpr std::int64_t kStdinToNone = -2;
constexpr std::uint32_t kMaxTerminalSide = 0xffff;
constexpr std::size_t kMaxNodeNames = limits::kMaxNodes;
// A century is practically no limit, and it can be added to any time point.
constexpr base::Duration kLongestLimit = std::chrono::hours(24 * 36'500);

base::Duration limit_of(std::int64_t ns) {
  return std::min(base::Duration(ns), kLongestLimit);
}

void check_names(FieldCheck& check, std::string_view field,
                 const google::protobuf::RepeatedPtrField<std::string>& names) {
  check.at_most(field, static_cast<std::size_t>(names.size()), kMaxNodeNames);
  for (const auto& name : names) {
    if (!check.ok()) return;
    check.host_name(field, name);
  }
}

bool is_word(std::string_view text) {
  return text.empty() || base::is_host_name(text);
}

// Checks the fields that only some jobs use: accounts, reservations, features, generic resources.
void check_wishes(FieldCheck& check, const wire::ResourceRequest& message) {
  check.require("account", is_word(message.account()), "is no name");
  check.require("reservation", is_word(message.reservation()), "is no name");
  check.at_most("features", static_cast<std::size_t>(message.features_size()),
                limits::kMaxFeatures);
  for (const std::string& feature : message.features()) {
    check.at_most("features", feature.size(), limits::kMaxFeatures * limits::kMaxNodeNameBytes);
    for (const auto name : base::split(feature, '|')) {
      if (!check.ok()) return;
      check.host_name("features", name);
    }
  }
  check_generic(check, message.generic());
}

// Adds the number of bytes that execve counts for the texts to `bytes`.
void check_texts(FieldCheck& check, std::string_view field,
                 const google::protobuf::RepeatedPtrField<std::string>& texts, std::size_t& bytes) {
  for (const auto& text : texts) {
    if (!check.ok()) return;
    check.c_string(field, text, limits::kMaxExecBytes);
    bytes += text.size() + limits::kExecBytesPerString;
  }
  if (bytes <= limits::kMaxExecBytes) return;
  check.require(field, false,
                fmt::format("makes arguments and environment {} bytes in all, limit {}", bytes,
                            limits::kMaxExecBytes));
}

void check_environment(FieldCheck& check,
                       const google::protobuf::RepeatedPtrField<std::string>& variables,
                       std::size_t& bytes) {
  check_texts(check, "env", variables, bytes);
  for (const auto& variable : variables) {
    auto equals = variable.find('=');
    check.require("env", equals != std::string::npos && equals > 0,
                  "has an entry that is not NAME=value");
  }
}

// The sizes of all programs count together: one exec never gets more, and the specification stays
// within a frame.
void check_programs(FieldCheck& check, const wire::LaunchSpec& spec) {
  check.require("programs", spec.programs_size() > 0, "is empty");
  google::protobuf::RepeatedPtrField<std::string> words;
  google::protobuf::RepeatedPtrField<std::string> variables = spec.env();
  std::uint64_t tasks = 0;
  for (const auto& program : spec.programs()) {
    const bool is_named = program.argv_size() > 0 && !program.argv(0).empty();
    check.require("argv", is_named, "names no program");
    check.require("tasks", spec.programs_size() == 1 || program.tasks() > 0, "is 0");
    check.c_string("directory", program.directory(), limits::kMaxPathBytes);
    check.require("directory", program.directory().empty() || program.directory().starts_with('/'),
                  "is not absolute");
    words.MergeFrom(program.argv());
    variables.MergeFrom(program.env());
    tasks += program.tasks();
    if (!check.ok()) return;
  }
  check.at_most("tasks", tasks, limits::kMaxTasksPerJob);
  std::size_t bytes = 0;
  check_texts(check, "argv", words, bytes);
  check_environment(check, variables, bytes);
}

void check_paths(FieldCheck& check, const wire::LaunchSpec& spec) {
  check.c_string("directory", spec.directory(), limits::kMaxPathBytes);
  check.require("directory", spec.directory().starts_with('/'), "is not absolute");
  const auto file = [&check](std::string_view field, const std::string& pattern) {
    check.c_string(field, pattern, limits::kMaxPathBytes);
    if (!check.ok()) return;
    const auto sound = base::check_pattern(pattern);
    check.require(field, sound.has_value(), sound ? std::string() : sound.error().context());
  };
  file("stdin_path", spec.stdin_path());
  file("stdout_path", spec.stdout_path());
  file("stderr_path", spec.stderr_path());
}

void check_rank_limits(FieldCheck& check, const wire::LaunchSpec& spec) {
  check.at_most("limits", static_cast<std::size_t>(spec.limits_size()), RLIM_NLIMITS);
  for (const auto& limit : spec.limits()) {
    check.within("limits.resource", limit.resource(), 0, RLIM_NLIMITS - 1);
    check.require("limits", limit.soft() <= limit.hard(), "has a soft limit above the hard one");
  }
}

void check_script(FieldCheck& check, const wire::LaunchSpec& spec) {
  const std::string& script = spec.script();
  if (script.empty()) return;
  check.at_most("script", script.size(), limits::kMaxScriptBytes);
  check.require("script", script.starts_with("#!"), "does not begin with #!");
  check.require("script", script.find('\0') == std::string::npos, "contains a NUL byte");
  check.require("programs", spec.programs_size() == 1, "are several beside a script");
}

}  // namespace

void check_generic(FieldCheck& check,
                   const google::protobuf::RepeatedPtrField<wire::GenericResource>& generic) {
  check.at_most("generic", static_cast<std::size_t>(generic.size()), limits::kMaxGenericKinds);
  std::set<std::string> names;
  for (const auto& resource : generic) {
    if (!check.ok()) return;
    check.host_name("generic.name", resource.name());
    check.within("generic.count", resource.count(), 1, limits::kMaxGenericCount);
    check.require("generic.name", names.insert(resource.name()).second, "is there twice");
  }
}

wire::GenericResource to_wire(const base::GenericResource& resource) {
  wire::GenericResource out;
  out.set_name(resource.name);
  out.set_count(resource.count);
  out.set_memory_bytes(resource.memory.value());
  out.set_shared(resource.shared);
  return out;
}

base::GenericResource from_wire(const wire::GenericResource& message) {
  return {message.name(), message.count(), base::Bytes(message.memory_bytes()), message.shared()};
}

wire::ResourceRequest to_wire(const base::ResourceRequest& request) {
  wire::ResourceRequest out;
  out.set_nodes(request.nodes);
  out.set_tasks(request.tasks);
  out.set_tasks_per_node(request.tasks_per_node);
  out.set_cpus_per_task(request.cpus_per_task);
  out.set_memory_per_node_bytes(request.memory_per_node.value());
  for (const auto& name : request.only_nodes) out.add_only_nodes(name);
  for (const auto& name : request.except_nodes) out.add_except_nodes(name);
  out.set_queue(static_cast<std::uint32_t>(request.queue));
  out.set_weight(request.weight);
  out.set_priority(request.priority);
  out.set_held(request.held);
  out.set_scheduled_limit_ns(request.scheduled_limit.count());
  out.set_wall_limit_ns(request.wall_limit.count());
  out.set_overlay(request.overlay);
  out.set_distribution(static_cast<std::uint32_t>(request.distribution));
  out.set_kill_deadlock(request.kill_deadlock);
  out.set_requeue(static_cast<std::uint32_t>(request.requeue));
  out.set_most_nodes(request.most_nodes);
  out.set_own_cores(request.own_cores);
  out.set_no_fill(request.no_fill);
  out.set_inside(request.inside.value());
  out.set_step(request.step);
  out.set_allocation(request.allocation);
  out.set_overlap(request.overlap);
  out.set_account(request.account);
  out.set_reservation(request.reservation);
  for (const auto& feature : request.features) out.add_features(feature);
  for (const auto& resource : request.generic) *out.add_generic() = to_wire(resource);
  out.set_scratch_bytes(request.scratch.value());
  return out;
}

Result<base::ResourceRequest> from_wire(const wire::ResourceRequest& message) {
  FieldCheck check("ResourceRequest");
  check.within("nodes", message.nodes(), 0, limits::kMaxNodes);
  check.within("tasks", message.tasks(), 0, limits::kMaxTasksPerJob);
  check.within("tasks_per_node", message.tasks_per_node(), 0, limits::kMaxTasksPerNode);
  check.within("cpus_per_task", message.cpus_per_task(), 0, limits::kMaxCoresPerNode);
  check_names(check, "only_nodes", message.only_nodes());
  check_names(check, "except_nodes", message.except_nodes());
  check.within("queue", message.queue(), 0, static_cast<int>(base::Queue::Urgent));
  check.within("weight", message.weight(), 0, limits::kMaxWeight);
  check.within("distribution", message.distribution(), 0,
               static_cast<int>(base::Distribution::Cyclic));
  check.within("requeue", message.requeue(), 0, static_cast<int>(base::Requeue::Yes));
  check.within("most_nodes", message.most_nodes(), 0, limits::kMaxNodes);
  check.require("scheduled_limit_ns", message.scheduled_limit_ns() >= 0, "is negative");
  check.require("wall_limit_ns", message.wall_limit_ns() >= 0, "is negative");
  const bool is_step = message.inside() != 0;
  check.require("inside", message.inside() <= UINT64_MAX / base::kAttemptsPerJob, "is not a job");
  check.require("inside", !is_step || (!message.allocation() && !message.overlay()),
                "cannot be a job with cores of its own");
  check.require("allocation", !message.allocation() || !message.overlay(), "takes no cores");
  check_wishes(check, message);
  if (!check.ok()) return check.error();

  base::ResourceRequest out;
  out.nodes = message.nodes();
  out.tasks = message.tasks();
  out.tasks_per_node = message.tasks_per_node();
  if (message.cpus_per_task() != 0) out.cpus_per_task = message.cpus_per_task();
  out.memory_per_node = base::Bytes(message.memory_per_node_bytes());
  out.only_nodes.assign(message.only_nodes().begin(), message.only_nodes().end());
  out.except_nodes.assign(message.except_nodes().begin(), message.except_nodes().end());
  out.queue = static_cast<base::Queue>(message.queue());
  if (message.weight() != 0) out.weight = message.weight();
  out.priority = message.priority();
  out.held = message.held();
  out.scheduled_limit = limit_of(message.scheduled_limit_ns());
  out.wall_limit = limit_of(message.wall_limit_ns());
  out.overlay = message.overlay();
  out.distribution = static_cast<base::Distribution>(message.distribution());
  out.kill_deadlock = message.kill_deadlock();
  out.requeue = static_cast<base::Requeue>(message.requeue());
  out.most_nodes = message.most_nodes();
  out.own_cores = message.own_cores();
  out.no_fill = message.no_fill();
  out.inside = base::JobId(message.inside());
  out.step = message.step();
  out.allocation = message.allocation();
  out.overlap = message.overlap();
  out.account = message.account();
  out.reservation = message.reservation();
  out.features.assign(message.features().begin(), message.features().end());
  for (const auto& resource : message.generic()) out.generic.push_back(from_wire(resource));
  out.scratch = base::Bytes(message.scratch_bytes());
  return out;
}

Result<void> check_launch_spec(const wire::LaunchSpec& spec) {
  FieldCheck check("LaunchSpec");
  check_programs(check, spec);
  check_paths(check, spec);
  check.within("umask", spec.umask(), 0, 0777);
  check.within("stdin_rank", spec.stdin_rank(), kStdinToNone,
               std::int64_t{limits::kMaxTasksPerJob} - 1);
  static_assert(kStdinToNone < kStdinToAll, "both lie below the ranks");
  check.within("terminal_rows", spec.terminal_rows(), 0, kMaxTerminalSide);
  check.within("terminal_columns", spec.terminal_columns(), 0, kMaxTerminalSide);
  check.require("mpi", wire::LaunchSpec::Mpi_IsValid(spec.mpi()), "is unknown");
  check.require("net", wire::LaunchSpec::Net_IsValid(spec.net()), "is unknown");
  check.require("cpu_bind", wire::LaunchSpec::Bind_IsValid(spec.cpu_bind()), "is unknown");
  check.c_string("job_name", spec.job_name(), limits::kMaxJobNameBytes);
  check.require("nodelist", base::expand_hostlist(spec.nodelist()).has_value(), "is no host list");
  check.within("cpus_per_task", spec.cpus_per_task(), 0, limits::kMaxCoresPerNode);
  check.within("spawn", spec.spawn(), 0, limits::kMaxTasksPerJob);
  check_rank_limits(check, spec);
  check_script(check, spec);
  return check.result();
}

Result<wire::LaunchSpec> parse_launch_spec(std::string_view bytes) {
  auto spec = parse<wire::LaunchSpec>(bytes, "LaunchSpec");
  if (!spec) return spec;
  auto checked = check_launch_spec(*spec);
  if (!checked) return checked.error();
  return spec;
}

wire::TaskExit to_wire(const base::TaskExit& exit) {
  wire::TaskExit out;
  out.set_rank(exit.rank.value());
  out.set_code(exit.code);
  out.set_signal(exit.signal);
  out.set_ended_ns(exit.ended.time_since_epoch().count());
  out.set_was_ending(exit.was_ending);
  return out;
}

Result<base::TaskExit> from_wire(const wire::TaskExit& message) {
  FieldCheck check("TaskExit");
  check.within("rank", message.rank(), 0, limits::kMaxTasksPerJob - 1);
  check.within("code", message.code(), 0, 255);
  check.within("signal", message.signal(), 0, _NSIG);
  if (!check.ok()) return check.error();
  return base::TaskExit{base::Rank(message.rank()), message.code(), message.signal(),
                        TimePoint(Duration(message.ended_ns())), message.was_ending()};
}

void to_wire(std::span<const base::TaskExit> exits, WireExits& out) {
  for (const auto& exit : exits) *out.Add() = to_wire(exit);
}

Result<std::vector<base::TaskExit>> from_wire(const WireExits& message) {
  if (static_cast<std::size_t>(message.size()) > limits::kMaxTasksPerNode) {
    return base::fail(WireErrc::BadMessage, "{} task exits, limit {}", message.size(),
                      limits::kMaxTasksPerNode);
  }
  std::vector<base::TaskExit> exits;
  exits.reserve(static_cast<std::size_t>(message.size()));
  for (const auto& entry : message) {
    auto exit = from_wire(entry);
    if (!exit) return exit.error();
    exits.push_back(*exit);
  }
  return exits;
}

Result<base::JobState> job_state_from_wire(std::uint32_t state) {
  if (state > static_cast<std::uint32_t>(base::JobState::OutOfMemory)) {
    return base::fail(WireErrc::BadMessage, "job state {}", state);
  }
  return static_cast<base::JobState>(state);
}

Result<base::AttemptPhase> phase_from_wire(std::uint32_t phase) {
  if (phase > static_cast<std::uint32_t>(base::AttemptPhase::Exited)) {
    return base::fail(WireErrc::BadMessage, "phase {}", phase);
  }
  return static_cast<base::AttemptPhase>(phase);
}

std::string to_wire(const base::RequestId& id) {
  std::string bytes;
  for (std::uint64_t half : {id.high, id.low}) {
    for (unsigned shift = 64; shift > 0; shift -= 8) {
      bytes += static_cast<char>(half >> (shift - 8) & 0xff);
    }
  }
  return bytes;
}

Result<base::RequestId> request_id_from_wire(std::string_view bytes) {
  if (bytes.size() != 16) {
    return base::fail(WireErrc::BadMessage, "request id of {} bytes, must be 16", bytes.size());
  }
  base::RequestId id;
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint64_t& half = i < 8 ? id.high : id.low;
    half = half << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (id.is_none()) return base::fail(WireErrc::BadMessage, "request id is all zero");
  return id;
}

wire::Error to_wire(const base::Error& error, int exit_code) {
  wire::Error out;
  const auto& code = error.code();
  if (code.category() == base::errc_category()) {
    out.set_code(code.value());
  } else if (code.category() == wire_category()) {
    out.set_code(kFirstWireCode + code.value());
  } else if (code.category() == std::generic_category() ||
             code.category() == std::system_category()) {
    out.set_code(std::clamp(code.value() + kFirstErrno, kFirstErrno, kLastErrno));
  }
  out.set_text(error.message().substr(0, limits::kMaxErrorTextBytes));
  out.set_exit_code(exit_code);
  return out;
}

base::Error from_wire(const wire::Error& message) {
  std::error_code code = base::Errc::WrongState;
  std::int32_t number = message.code();
  if (number > 0 && number <= static_cast<int>(base::Errc::Closed)) {
    code = static_cast<base::Errc>(number);
  } else if (number > kFirstWireCode &&
             number <= kFirstWireCode + static_cast<int>(WireErrc::BadPeer)) {
    code = static_cast<WireErrc>(number - kFirstWireCode);
  } else if (number > kFirstErrno && number <= kLastErrno) {
    code = base::errno_code(number - kFirstErrno);
  }
  return base::Error(code, base::escape_terminal(message.text(), limits::kMaxErrorTextBytes));
}

}  // namespace score::proto
