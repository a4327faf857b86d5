#include "scored/job/plan/checks.hpp"

#include "base/errc.hpp"
#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/machine_fault.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "base/text/path_pattern.hpp"
#include "scored/job/plan/task_env.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

// On Linux, one string of argv or envp has at most 32 pages. All of them together have at most a
// quarter of the stack limit, between 128 KiB and limits::kMaxExecBytes (execve(2)).
constexpr std::size_t kMaxStringBytes = 128 * 1024;
constexpr std::size_t kMinExecBytes = 128 * 1024;

struct LimitName {
  int resource;
  const char* name;
  // The kernel derives its default from the size of memory, or it is only an upper bound: the
  // node's own limit is used instead of a refusal.
  bool is_soft;
};

constexpr std::array<LimitName, 16> kLimits{{
    {RLIMIT_CPU, "cpu time", false},
    {RLIMIT_FSIZE, "file size", false},
    {RLIMIT_DATA, "data size", false},
    {RLIMIT_STACK, "stack size", false},
    {RLIMIT_CORE, "core file size", true},
    {RLIMIT_RSS, "resident size", true},
    {RLIMIT_NPROC, "processes", true},
    {RLIMIT_NOFILE, "open files", false},
    {RLIMIT_MEMLOCK, "locked memory", false},
    {RLIMIT_AS, "address space", false},
    {RLIMIT_LOCKS, "file locks", true},
    {RLIMIT_SIGPENDING, "pending signals", true},
    {RLIMIT_MSGQUEUE, "message queues", true},
    {RLIMIT_NICE, "nice", true},
    {RLIMIT_RTPRIO, "real-time priority", true},
    {RLIMIT_RTTIME, "real-time cpu time", true},
}};

rlimit current_limit(int resource) {
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit;
}

std::string printable(std::string_view text) {
  return base::quote_value(text, 256);
}

Refusal refuse(int exit_code, const base::Error& error) {
  return {exit_code, error.message(), base::is_machine_fault(error)};
}

std::optional<Refusal> check_directory(const wire::LaunchSpec& spec) {
  if (chdir(spec.directory().c_str()) == 0) return std::nullopt;
  return refuse(kExitCannotExecute,
                base::fail(base::errno_code(errno), "directory {}", printable(spec.directory())));
}

// Returns the path that a name with a slash has from the program's directory.
std::string seen_from_job(const wire::Program& program) {
  const std::string& name = program.argv(0);
  const bool is_relative =
      !program.directory().empty() && !name.starts_with('/') && name.find('/') != std::string::npos;
  return is_relative ? program.directory() + "/" + name : name;
}

base::Status check_own_directory(const std::string& directory) {
  struct stat place {};

  if (directory.empty()) return {};
  if (stat(directory.c_str(), &place) == 0 && access(directory.c_str(), X_OK) == 0) {
    if (S_ISDIR(place.st_mode)) return {};
    errno = ENOTDIR;
  }
  return base::fail(base::errno_code(errno), "directory {}", printable(directory));
}

std::optional<Refusal> check_program(const wire::LaunchSpec& spec, const wire::Program& program) {
  if (auto good = check_own_directory(program.directory()); !good) {
    return refuse(kExitCannotExecute, good.error());
  }
  auto path = executable_of(spec, program);
  if (path) return std::nullopt;
  const std::string name = seen_from_job(program);
  const bool has_slash = name.find('/') != std::string::npos;

  struct stat info {};

  if (has_slash && stat(name.c_str(), &info) != 0 && errno != ENOENT) {
    return refuse(kExitCannotExecute,
                  base::fail(base::errno_code(errno), "executable {}", printable(name)));
  }
  if (has_slash && S_ISDIR(info.st_mode)) {
    return Refusal{kExitCannotExecute,
                   fmt::format("executable {}: is a directory", printable(name))};
  }
  if (path.error().is(base::Errc::NotFound)) {
    return Refusal{kExitNotFound, fmt::format("executable {}: not found{}", printable(name),
                                              has_slash ? "" : " in PATH")};
  }
  return Refusal{kExitCannotExecute,
                 fmt::format("executable {}: permission denied", printable(name))};
}

// Without this check the tasks would be started everywhere only to fail in execve.
std::optional<Refusal> check_sizes(const Plan& plan, const wire::Program& program) {
  std::size_t sum = 0;
  const auto add = [&sum](const std::string& text) {
    sum += text.size() + 1 + sizeof(char*);
    return text.size() < kMaxStringBytes;
  };
  for (const auto& argument : program.argv()) {
    if (!add(argument)) {
      return Refusal{kExitCannotExecute, fmt::format("argument of {} bytes: this system allows {}",
                                                     argument.size(), kMaxStringBytes - 1)};
    }
  }
  auto variables = plan.spec.env();
  variables.MergeFrom(program.env());
  for (const auto& variable : variables) {
    if (add(variable)) continue;
    const auto name = std::string_view(variable).substr(0, variable.find('='));
    return Refusal{kExitCannotExecute,
                   fmt::format("environment variable {} of {} bytes: this system allows {}",
                               printable(name), variable.size(), kMaxStringBytes - 1)};
  }
  for (const auto& variable : own_variables(plan, plan.members.front())) add(variable);
  rlimit stack = current_limit(RLIMIT_STACK);
  for (const auto& limit : plan.spec.limits()) {
    if (limit.resource() == RLIMIT_STACK) stack.rlim_cur = std::min(limit.soft(), stack.rlim_max);
  }
  const std::size_t allowed =
      std::clamp<std::size_t>(stack.rlim_cur / 4, kMinExecBytes, base::limits::kMaxExecBytes);
  if (sum <= allowed) return std::nullopt;
  return Refusal{kExitCannotExecute,
                 fmt::format("arguments and environment of {} bytes: this system "
                             "allows {} (a quarter of the stack limit)",
                             sum, allowed)};
}

// Checks whether the file could be written. Nothing is created or truncated, so another node may
// still refuse. Missing directories are created with the file, so the nearest one that exists
// counts.
base::Status check_output(const std::string& path) {
  auto file = base::open_file(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  if (file) return {};
  if (file.error().code() == std::errc::no_such_device_or_address)
    return {};  // a FIFO without a reader yet
  if (file.error().code() != std::errc::no_such_file_or_directory) return file.error();
  std::string directory = base::parent_directory(path);
  while (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    if (errno != ENOENT || directory == "/" || directory == ".") {
      return base::fail(base::errno_code(errno), "create {}", path);
    }
    directory = base::parent_directory(directory);
  }
  return {};
}

base::Status check_input(const std::string& path) {
  auto file = base::open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return file ? base::Status() : file.error();
}

std::optional<Refusal> check_files(const Plan& plan, const std::string& pattern,
                                   base::Status (*check)(const std::string& path)) {
  if (pattern.empty()) return std::nullopt;
  const std::uint32_t files = base::scope_of(pattern).per_rank ? plan.local_tasks() : 1;
  for (std::uint32_t task = 0; task < files; ++task) {
    auto path = file_name_of(plan, task, pattern);
    if (!path) return refuse(kExitError, path.error());
    if (auto good = check(*path); !good) return refuse(kExitError, good.error());
  }
  return std::nullopt;
}

}  // namespace

// The launcher sets USER in the environment of this process.
base::Result<std::string> file_name_of(const Plan& plan, std::uint32_t task,
                                       std::string_view pattern) {
  const char* user = std::getenv("USER");
  base::PatternValues values;
  values.job = plan.spec.job();
  values.rank = plan.rank_of(task);
  values.node = plan.prepare.node_name();
  values.node_index = plan.prepare.node_index();
  values.step = plan.spec.step();
  values.job_name = plan.spec.job_name();
  values.user = user != nullptr ? std::string_view(user) : std::string_view();
  return base::expand_pattern(pattern, values);
}

base::Result<std::string> executable_of(const wire::LaunchSpec& spec,
                                        const wire::Program& program) {
  constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
  return base::find_executable(seen_from_job(program),
                               find_variable(spec, program, "PATH").value_or(kDefaultPath));
}

std::vector<std::uint32_t> local_apps(const Plan& plan) {
  std::set<std::uint32_t> apps;
  for (const std::uint32_t task : plan.members) apps.insert(plan.apps[task]);
  return {apps.begin(), apps.end()};
}

base::Result<std::vector<std::pair<int, rlimit>>> limits_of(const Plan& plan) {
  std::vector<std::pair<int, rlimit>> out;
  for (const auto& wanted : plan.spec.limits()) {
    const auto known =
        std::ranges::find(kLimits, static_cast<int>(wanted.resource()), &LimitName::resource);
    if (known == kLimits.end()) continue;  // the limit is from a newer kernel
    const rlimit here = current_limit(known->resource);
    rlimit limit{.rlim_cur = wanted.soft(), .rlim_max = std::min(wanted.hard(), here.rlim_max)};
    if (limit.rlim_cur > limit.rlim_max) {
      if (!known->is_soft && here.rlim_max < wanted.soft()) {
        return base::fail(base::Errc::Denied, "limit on {} of {}: this node grants {}", known->name,
                          wanted.soft(), here.rlim_max);
      }
      limit.rlim_cur = limit.rlim_max;
    }
    out.emplace_back(known->resource, limit);
  }
  if (plan.prepare.limit_by_rlimit() && plan.prepare.memory_bytes() > 0) {
    const rlim_t share = plan.prepare.memory_bytes() / plan.local_tasks();
    out.emplace_back(RLIMIT_DATA, rlimit{.rlim_cur = share, .rlim_max = share});
  }
  return out;
}

std::optional<Refusal> check_plan(const Plan& plan) {
  const auto& spec = plan.spec;
  // A node of an allocation may hold a part of the job's volume and run no task.
  if (plan.local_tasks() == 0) return std::nullopt;
  if (auto refusal = check_directory(spec)) return refusal;
  for (const std::uint32_t app : local_apps(plan)) {
    const auto& program = spec.programs(static_cast<int>(app));
    if (spec.script().empty()) {
      if (auto refusal = check_program(spec, program)) return refusal;
    }
    if (auto refusal = check_sizes(plan, program)) return refusal;
  }
  if (auto limits = limits_of(plan); !limits) {
    return Refusal{kExitError, limits.error().context()};
  }
  if (auto refusal = check_files(plan, spec.stdin_path(), check_input)) return refusal;
  if (auto refusal = check_files(plan, spec.stdout_path(), check_output)) return refusal;
  return check_files(plan, spec.stderr_path(), check_output);
}

}  // namespace score::shepherd
