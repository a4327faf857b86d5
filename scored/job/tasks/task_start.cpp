#include "scored/job/tasks/task_start.hpp"

#include "base/errc.hpp"
#include "base/exit_codes.hpp"
#include "base/text.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/task_env.hpp"
#include "scored/job/tasks/script_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kMaxShownPath = 512;

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Returns the package number as text, which is equal for two cpus of one socket; "" if it is
// unknown.
std::string socket_of(int cpu) {
  constexpr std::size_t kMostBytes = 64;
  return base::read_file(
             fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
             kMostBytes)
      .value_or("");
}

void widen_to_sockets(cpu_set_t& set, const std::vector<int>& usable) {
  const cpu_set_t cores = set;
  for (const int other : usable) {
    const auto shares = [&](int cpu) {
      return CPU_ISSET(cpu, &cores) && socket_of(cpu) == socket_of(other);
    };
    if (std::ranges::any_of(usable, shares)) CPU_SET(other, &set);
  }
}

cpu_set_t set_of(std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

// Returns the cpus of the job's cores, in their order; empty if they are not known.
std::vector<int> cpus_of_job(const Plan& plan, const std::vector<int>& usable) {
  const auto& prepare = plan.prepare;
  if (prepare.cpus_size() == prepare.cores_size()) {
    return {prepare.cpus().begin(), prepare.cpus().end()};
  }
  std::vector<int> cpus;
  for (const std::uint32_t core : prepare.cores()) {
    if (!usable.empty()) cpus.push_back(usable[(prepare.first_core() + core) % usable.size()]);
  }
  return cpus;
}

// Call this after execve(path) has failed. A script without an interpreter line is run by sh, as
// execvp and every shell do. A script on a file system mounted noexec is run by its interpreter.
// Returns the error. argv has two free entries, then the program's words.
int try_interpreter(const std::string& path, std::vector<char*>& argv,
                    std::vector<char*>& environment) {
  const int error = errno;
  std::string file = path;
  if (error == ENOEXEC) {
    std::array<char, 3> shell{'s', 'h', '\0'};
    argv[1] = shell.data();
    argv[2] = file.data();
    execve("/bin/sh", argv.data() + 1, environment.data());
    return ENOEXEC;
  }
  auto [interpreter, argument] = interpreter_of(path);
  if (error != EACCES || interpreter.empty()) return error;
  const std::size_t first = argument.empty() ? 1 : 0;
  argv[first] = interpreter.data();
  if (!argument.empty()) argv[1] = argument.data();
  argv[2] = file.data();
  execve(interpreter.c_str(), argv.data() + first, environment.data());
  return error;
}

}  // namespace

std::vector<cpu_set_t> cores_of_tasks(const Plan& plan) {
  const bool is_confined = plan.prepare.cpus_size() > 0;
  auto usable = usable_cpus();
  const auto cpus = cpus_of_job(plan, usable);
  if (is_confined) usable = cpus;
  if (cpus.empty()) return {};
  if (plan.spec.cpu_bind() == wire::LaunchSpec::BIND_NONE) {
    if (!is_confined) return {};
    return {plan.local_tasks(), set_of(cpus)};
  }
  const auto each = static_cast<int>(std::max(1U, plan.spec.cpus_per_task()));
  const std::uint32_t places = plan.places();
  std::vector<cpu_set_t> sets;
  for (std::uint32_t task = 0; task < plan.local_tasks(); ++task) {
    const int first = static_cast<int>(task * places / plan.local_tasks()) * each;
    if (first + each > static_cast<int>(cpus.size())) return {};
    cpu_set_t set = set_of({cpus.data() + first, static_cast<std::size_t>(each)});
    if (plan.spec.cpu_bind() == wire::LaunchSpec::BIND_SOCKET) widen_to_sockets(set, usable);
    sets.push_back(set);
  }
  return sets;
}

base::Result<TaskExecutor> TaskExecutor::create(const Plan& plan) {
  TaskExecutor starter(plan);
  if (chdir(plan.spec.directory().c_str()) != 0) {
    return base::fail(base::errno_code(errno), "directory {}", plan.spec.directory());
  }
  starter.paths_.resize(static_cast<std::size_t>(plan.spec.programs_size()));
  for (const std::uint32_t app : local_apps(plan)) {
    if (!plan.spec.script().empty()) break;
    auto path = executable_of(plan.spec, plan.spec.programs(static_cast<int>(app)));
    if (!path) return path.error();
    starter.paths_[app] = std::move(*path);
  }
  auto limits = limits_of(plan);
  if (!limits) return limits.error();
  starter.limits_ = std::move(*limits);
  starter.cores_ = cores_of_tasks(plan);
  return starter;
}

void TaskExecutor::run(std::uint32_t task, std::span<const base::UniqueFd> fds) const {
  reset_signals();
  place_descriptors(task, fds);
  leave_session(task);
  if (plan_->has_terminal(task)) take_terminal(task);
  umask(plan_->spec.umask() & 0777U);
  open_input(task);
  const auto& directory = plan_->program_of(task).directory();
  if (!directory.empty() && chdir(directory.c_str()) != 0) {
    fail(task, directory.c_str(), errno, kExitCannotExecute);
  }
  execute(task);
}

void TaskExecutor::fail(std::uint32_t task, const char* what, int error, int exit_code) const {
  const auto line = fmt::format("scored: {}: rank {}: {}: {}\n", plan_->prepare.node_name(),
                                plan_->rank_of(task), what, std::strerror(error));
  [[maybe_unused]] const auto put = write(STDERR_FILENO, line.data(), line.size());
  _exit(exit_code);
}

// All sources are above the targets, because the spawner keeps 0 to 4 occupied.
void TaskExecutor::place_descriptors(std::uint32_t task,
                                     std::span<const base::UniqueFd> fds) const {
  for (std::size_t i = fds.size(); i-- > 0;) {  // stderr first, for the message
    if (dup2(fds[i].get(), static_cast<int>(i)) < 0) fail(task, "descriptors", errno, kExitError);
  }
  closefrom(static_cast<int>(fds.size()));
}

// The kernel gives each session one share of the machine (autogroup), so 64 tasks in one session
// would together get half of it while a different session has a single process.
void TaskExecutor::leave_session(std::uint32_t task) const {
  if (!plan_->prepare.own_sessions() && !plan_->has_terminal(task)) return;
  if (setsid() < 0) fail(task, "session", errno, kExitError);
}

// The shepherd, which must not wait, has only opened the FIFO's path. It is opened here, so only
// this task waits for a writer.
void TaskExecutor::open_input(std::uint32_t task) const {
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags < 0 || (flags & O_PATH) == 0) return;
  const int fifo = open("/proc/self/fd/0", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fifo < 0 || dup2(fifo, STDIN_FILENO) < 0) fail(task, "input", errno, kExitError);
  close(fifo);
}

void TaskExecutor::take_terminal(std::uint32_t task) const {
  if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) {
    fail(task, "terminal", errno, kExitError);
  }
}

void TaskExecutor::set_limits(std::uint32_t task) const {
  if (!cores_.empty() && sched_setaffinity(0, sizeof cores_[task], &cores_[task]) != 0) {
    fail(task, "bind to cores", errno, kExitError);
  }
  for (const auto& [resource, limit] : limits_) {
    if (setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
      fail(task, "resource limits", errno, kExitError);
    }
  }
}

void TaskExecutor::execute(std::uint32_t task) const {
  const auto& program = plan_->program_of(task);
  const bool is_script = !plan_->spec.script().empty();
  const std::string path = is_script ? plan_->prepare.script_path() : paths_[plan_->apps[task]];
  std::vector<char*> argv(2, nullptr);  // room for an interpreter and its argument
  for (const auto& argument : program.argv()) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const auto own = own_variables(*plan_, task);
  const std::vector<std::string> of_program(program.env().begin(), program.env().end());
  std::vector<char*> environment;
  const auto add = [&environment](const std::string& variable) {
    environment.push_back(const_cast<char*>(variable.c_str()));
  };
  for (const auto& variable : plan_->spec.env()) {
    if (!is_replaced(variable, own) && !is_replaced(variable, of_program)) add(variable);
  }
  for (const auto& variable : of_program) {
    if (!is_replaced(variable, own)) add(variable);
  }
  for (const auto& variable : own) add(variable);
  environment.push_back(nullptr);

  set_limits(task);  // last, because they may leave no memory for the above
  execve(path.c_str(), argv.data() + 2, environment.data());
  const int error = try_interpreter(path, argv, environment);
  const auto shown = base::quote_value(is_script ? program.argv(0) : path, kMaxShownPath);
  const auto interpreter = interpreter_of(path).path;
  const auto by = interpreter.empty() || error == ENOEXEC
                      ? std::string()
                      : ": interpreter " + base::quote_value(interpreter, kMaxShownPath);
  const auto what = "exec " + shown + by;
  fail(task, what.c_str(), error, error == ENOENT ? kExitNotFound : kExitCannotExecute);
}

}  // namespace score::shepherd
