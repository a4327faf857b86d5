#include "base/os/spawn.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// clone3 provides what fork and posix_spawn cannot: a pidfd from the start, and default signal
// handlers. The child is a copy, not a vfork that shares our memory. Its code may be ordinary code,
// but it may make only system calls, because locks of other threads may be held in the copy. The
// parent prepares everything that it needs. The child reports its first failure through a
// close-on-exec pipe as {step, errno}; end of file without a byte means that exec succeeded.

namespace score::inline base {

namespace {

constexpr int kMaxTargetFd = 64;

enum class SpawnStep : int { Session, Descriptors, Directory, Exec };

struct ChildReport {
  SpawnStep step;
  int error;
};

// A ChildPlan contains everything that the child reads. The parent makes it before it creates the
// child.
struct ChildPlan {
  const SpawnSpec* spec = nullptr;
  std::vector<char*> argv;
  std::vector<char*> environment;
  std::vector<std::pair<int, int>> fds;  // sorted by target; sources are replaced by the child
  int report_fd = -1;
};

[[noreturn]] void give_up(const ChildPlan& plan, SpawnStep step, int error) {
  const ChildReport report{.step = step, .error = error};
  [[maybe_unused]] const auto written = write(plan.report_fd, &report, sizeof report);
  _exit(127);
}

void check(const ChildPlan& plan, SpawnStep step, bool good) {
  if (!good) give_up(plan, step, errno);
}

// A daemon ignores SIGPIPE and blocks the signals that it waits for, but a program expects neither.
// CLONE_CLEAR_SIGHAND leaves ignored signals ignored, hence the loop. signal() fails for SIGKILL
// and SIGSTOP, which does no harm.
void clear_signals(const ChildPlan& plan) {
  for (int number = 1; number <= SIGRTMAX; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  check(plan, SpawnStep::Session, sigprocmask(SIG_SETMASK, &none, nullptr) == 0);
}

void enter_session(const ChildPlan& plan) {
  if (plan.spec->new_session) check(plan, SpawnStep::Session, setsid() >= 0);
}

void die_with_parent(const ChildPlan& plan, pid_t parent) {
  if (!plan.spec->die_with_parent) return;
  check(plan, SpawnStep::Session, prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  if (getppid() != parent) _exit(127);
}

void enter_directory(const ChildPlan& plan) {
  const auto& directory = plan.spec->directory;
  if (!directory.empty()) check(plan, SpawnStep::Directory, chdir(directory.c_str()) == 0);
}

// First moves every source (and the report pipe) above all targets, so that no target can overwrite
// one that is still needed. Then moves the sources into place, and finally closes all others.
// closefrom() reads /proc where close_range is refused.
void place_descriptors(ChildPlan& plan) {
  const auto step = SpawnStep::Descriptors;
  const int report = fcntl(plan.report_fd, F_DUPFD_CLOEXEC, kMaxTargetFd + 1);
  check(plan, step, report >= 0);
  plan.report_fd = report;
  for (auto& [source, target] : plan.fds) {
    if (source < 0) source = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int moved = fcntl(source, F_DUPFD_CLOEXEC, kMaxTargetFd);
    check(plan, step, moved >= 0);
    source = moved;
  }
  int next = 0;
  for (const auto& [source, target] : plan.fds) {
    check(plan, step, dup2(source, target) >= 0);
    while (next < target) close(next++);
    ++next;
  }
  check(plan, step, dup3(plan.report_fd, next, O_CLOEXEC) >= 0);
  plan.report_fd = next;
  closefrom(next + 1);
}

[[noreturn]] void run_child(ChildPlan& plan, pid_t parent) {
  clear_signals(plan);
  enter_session(plan);
  place_descriptors(plan);
  die_with_parent(plan, parent);
  enter_directory(plan);
  execve(plan.spec->path.c_str(), plan.argv.data(), plan.environment.data());
  give_up(plan, SpawnStep::Exec, errno);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Makes the plan. Errors: EINVAL for a plan that cannot be carried out.
Result<ChildPlan> make_plan(const SpawnSpec& spec) {
  ChildPlan plan;
  plan.spec = &spec;
  plan.argv = pointers(spec.argv);
  plan.environment = pointers(spec.environment);
  plan.fds = spec.fds;
  for (int standard = 0; standard <= 2; ++standard) {
    const auto is_it = [&](const auto& entry) { return entry.second == standard; };
    if (std::ranges::none_of(plan.fds, is_it)) plan.fds.emplace_back(-1, standard);
  }
  std::ranges::sort(plan.fds, {}, &std::pair<int, int>::second);
  const auto twice = std::ranges::adjacent_find(plan.fds, {}, &std::pair<int, int>::second);
  if (twice != plan.fds.end() || plan.fds.front().second < 0 ||
      plan.fds.back().second >= kMaxTargetFd || spec.argv.empty()) {
    return fail(errno_code(EINVAL), "cannot start {}", spec.path);
  }
  return plan;
}

Error describe(const SpawnSpec& spec, const ChildReport& report) {
  const auto code = errno_code(report.error);
  switch (report.step) {
    case SpawnStep::Session:
      return fail(code, "start session");
    case SpawnStep::Descriptors:
      return fail(code, "pass descriptors");
    case SpawnStep::Directory:
      return fail(code, "cannot enter {}", spec.directory);
    case SpawnStep::Exec:
      break;
  }
  return fail(code, "cannot exec {}", spec.path);
}

// Returns 0 or less for a process that was reaped.
pid_t process_of(int pidfd) {
  constexpr std::string_view kField = "Pid:";
  const auto text = read_file(fmt::format("/proc/self/fdinfo/{}", pidfd), 4096);
  if (!text) return 0;
  const auto lines = split(*text, '\n');
  const auto line = std::ranges::find_if(
      lines, [&](const std::string_view one) { return one.starts_with(kField); });
  if (line == lines.end()) return 0;
  return parse_number<pid_t>(trim(line->substr(kField.size()))).value_or(0);
}

}  // namespace

Result<SpawnedProcess> spawn(const SpawnSpec& spec) {
  auto plan = make_plan(spec);
  if (!plan) return plan.error();
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  plan->report_fd = pipe->write.get();

  const pid_t parent = getpid();
  int raw_pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
  args.pidfd = reinterpret_cast<std::uintptr_t>(&raw_pidfd);
  args.exit_signal = SIGCHLD;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid < 0 && (errno == ENOSYS || errno == EPERM)) {
    // Containers and units with RestrictNamespaces refuse clone3. The child's exec resets the
    // signal handlers.
    pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &raw_pidfd, 0, 0));
  }
  if (pid == 0) run_child(*plan, parent);
  if (pid < 0) return fail(errno_code(errno), "cannot fork for {}", spec.path);
  UniqueFd pidfd(raw_pidfd);
  pipe->write.reset();

  ChildReport report{};
  ssize_t got = 0;
  do {
    got = read(pipe->read.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return SpawnedProcess{.pid = pid, .pidfd = std::move(pidfd)};
  std::ignore = reap(pidfd.get(), true);
  return describe(spec, report);
}

Result<std::optional<ExitStatus>> reap(int pidfd, bool block) {
  siginfo_t info{};
  int done = 0;
  do {
    done = waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | (block ? 0 : WNOHANG));
  } while (done < 0 && errno == EINTR);
  if (done < 0) return fail(errno_code(errno), "cannot wait for a process");
  if (info.si_pid == 0) return std::optional<ExitStatus>();
  ExitStatus status;
  (info.si_code == CLD_EXITED ? status.code : status.signal) = info.si_status;
  return std::optional(status);
}

Status send_signal(int pidfd, int signal) {
  if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return {};
  if (errno == ENOSYS || errno == EPERM) {  // a container may refuse the call
    const pid_t pid = process_of(pidfd);
    if (pid > 0 && kill(pid, signal) == 0) return {};
    if (pid <= 0) errno = ESRCH;
  }
  return fail(errno_code(errno), "cannot send signal {}", signal);
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return fail(errno_code(errno), "cannot open a pidfd of {}", pid);
  return pidfd;
}

Result<std::string> find_executable(const std::string& name, std::string_view path_variable) {
  bool denied = false;
  const auto usable = [&](const std::string& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if (access(path.c_str(), X_OK) == 0) return true;
    denied = true;
    return false;
  };
  if (name.find('/') != name.npos) {
    if (usable(name)) return name;
  } else if (!name.empty()) {
    for (const auto directory : split(path_variable, ':')) {
      // An empty entry means the current directory, as in a shell.
      const auto path = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
      if (usable(path)) return path;
    }
  }
  return fail(denied ? Errc::Denied : Errc::NotFound, "executable {}", name);
}

std::filesystem::path own_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string find_beside(std::string_view name, std::initializer_list<const char*> places) {
  const auto here = own_directory();
  for (const char* place : places) {
    auto path = (here / place / name).lexically_normal().string();
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Result<std::string> find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_executable(name, path == nullptr ? "/usr/bin:/bin" : path);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

}  // namespace score::inline base
