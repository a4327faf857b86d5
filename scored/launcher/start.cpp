// Two forks an attempt. They are clone3 with CLONE_INTO_CGROUP, so that a child is born where it
// belongs: moving it by a write to cgroup.procs would wait for an RCU grace period under the lock
// that every freeze of every node on the machine takes.
//
// What the children find out comes back through one close-on-exec pipe: B's process id, what failed
// if something did, and end of file when both programs run.
#include "scored/launcher/start.hpp"

#include "base/exit_codes.hpp"
#include "scored/launcher/identity.hpp"
#include "scored/launcher/protocol.hpp"
#include "scored/launcher/thaw.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr std::int64_t kDeadlineMs = 5'000;
constexpr int kListenerFd = 3;
constexpr int kPairFd = 4;
constexpr int kFirstFreeFd = 10;  // above every number that a child uses by name
constexpr int kLowPriority = 10;

// From a child; below PIPE_BUF, so it arrives whole. error 0: `pid` is B's.
struct Note {
  std::int32_t error = 0;
  std::int32_t pid = 0;
  char step[40] = {};
};

struct Descriptors {
  int shepherd_cgroup = -1, tasks_cgroup = -1;
  int cpu_tasks = -1;  // the file `tasks` of the cpu directory
  int pair[2] = {-1, -1};
  int notes[2] = {-1, -1};

  ~Descriptors() {
    for (const int fd :
         {shepherd_cgroup, tasks_cgroup, cpu_tasks, pair[0], pair[1], notes[0], notes[1]}) {
      if (fd >= 0) close(fd);
    }
  }
};

struct Child {
  const StartSpec& spec;
  const Identity& identity;
  const Descriptors& fds;
};

Failure failure(const char* step, int error) {
  Failure failed{.error = error != 0 ? error : EIO};
  snprintf(failed.step, sizeof failed.step, "%s", step);
  return failed;
}

pid_t clone_into(int cgroup, int* pidfd) {
  clone_args args{};
  args.flags = pidfd != nullptr ? CLONE_PIDFD : 0U;
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  return static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
}

int open_cgroup(const StartSpec& spec, const char* below) {
  char path[64];
  snprintf(path, sizeof path, "job_%llu/%s", static_cast<unsigned long long>(spec.attempt), below);
  return openat(spec.cgroup_root, path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// ---- in the children: system calls only ---------------------------------------------------------

[[noreturn]] void give_up(const Child& child, const char* step) {
  Note note{.error = errno != 0 ? errno : EIO};
  snprintf(note.step, sizeof note.step, "%s", step);
  [[maybe_unused]] const ssize_t sent = write(child.fds.notes[1], &note, sizeof note);
  _exit(kExitNotFound);
}

void must(bool done, const Child& child, const char* step) {
  if (!done) give_up(child, step);
}

// Afterwards 0, 1 and 2, `wanted` as `number`, the pair as 4 and nothing else survive exec. Every
// source was opened at kFirstFreeFd or above.
void place_descriptors(const Child& child, int listener, int pair) {
  must(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0, child, "close_range");
  must(dup2(child.spec.null_device, 0) == 0 && dup2(child.spec.null_device, 1) == 1, child, "dup2");
  if (listener >= 0) must(dup2(listener, kListenerFd) == kListenerFd, child, "dup2");
  must(dup2(pair, kPairFd) == kPairFd, child, "dup2");
}

void reset_state(const Child& child) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  umask(022);
  must(chdir("/") == 0, child, "chdir /");
  if (!child.spec.reset_oom_score) return;
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const ssize_t written = write(score, "0", 1);
  close(score);
}

[[noreturn]] void execute(const Child& child, const char* role) {
  reset_state(child);
  if (const char* failed = become(child.identity)) give_up(child, failed);
  const char* argv[] = {"scored-shepherd", role, nullptr};
  execve(child.spec.shepherd, const_cast<char* const*>(argv), child.identity.environment);
  give_up(child, "exec the shepherd");
}

// A write to `tasks` moves this thread, which is the only one of the process, without the wait that
// a write to cgroup.procs costs.
void join_cpu_directory(const Child& child) {
  if (child.fds.cpu_tasks < 0) return;
  must(write(child.fds.cpu_tasks, "0", 1) == 1, child, "join the cpu directory");
}

[[noreturn]] void run_spawner(const Child& child) {
  join_cpu_directory(child);
  must(setsid() >= 0, child, "setsid");
  place_descriptors(child, -1, child.fds.pair[1]);
  if (child.spec.low_priority) setpriority(PRIO_PROCESS, 0, kLowPriority);
  execute(child, "spawner");
}

[[noreturn]] void run_shepherd(const Child& child) {
  must(setsid() >= 0, child, "setsid");
  setpriority(PRIO_PROCESS, 0, 0);
  must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, child, "subreaper");
  const pid_t spawner = clone_into(child.fds.tasks_cgroup, nullptr);
  if (spawner == 0) run_spawner(child);
  must(spawner > 0, child, "fork into tasks");
  const Note note{.error = 0, .pid = spawner, .step = {}};
  must(write(child.fds.notes[1], &note, sizeof note) == sizeof note, child, "write");
  place_descriptors(child, child.spec.listener, child.fds.pair[0]);
  execute(child, "shepherd");
}

// ---- in the launcher ----------------------------------------------------------------------------

int above(int fd) {
  if (fd < 0 || fd >= kFirstFreeFd) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
  close(fd);
  return moved;
}

Failure open_all(const StartSpec& spec, Descriptors& fds) {
  if (pipe2(fds.notes, O_CLOEXEC) != 0) return failure("pipe", errno);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.pair) != 0) {
    return failure("socketpair", errno);
  }
  for (int* fd : {&fds.notes[0], &fds.notes[1], &fds.pair[0], &fds.pair[1]}) {
    *fd = above(*fd);
    if (*fd < 0) return failure("descriptors", errno);
  }
  if (spec.cgroup_root < 0) return {};
  fds.shepherd_cgroup = open_cgroup(spec, "shepherd");
  if (fds.shepherd_cgroup < 0) return failure("open the cgroup of the shepherd", errno);
  fds.tasks_cgroup = open_cgroup(spec, "tasks");
  if (fds.tasks_cgroup < 0) return failure("open the cgroup of the tasks", errno);
  if (spec.cpu_root < 0) return {};
  fds.cpu_tasks = open_cpu_tasks(spec.cpu_root, spec.cgroup_root, spec.attempt);
  if (fds.cpu_tasks < 0) return failure("open the cpu directory of the tasks", errno);
  return {};
}

std::int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000 + now.tv_nsec / 1'000'000;
}

// Until both have closed the pipe by exec, or one says why not.
Failure read_notes(int notes, Started& started) {
  const std::int64_t deadline = now_ms() + kDeadlineMs;
  for (;;) {
    const std::int64_t left = deadline - now_ms();
    pollfd ready{.fd = notes, .events = POLLIN, .revents = 0};
    const int polled = left <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return failure("wait for the shepherd", polled < 0 ? errno : ETIMEDOUT);
    Note note;
    const ssize_t got = read(notes, &note, sizeof note);
    if (got == 0) return started.group > 0 ? Failure{} : failure("start the shepherd", ECHILD);
    if (got != sizeof note) return failure("read", got < 0 ? errno : EIO);
    if (note.error != 0) return failure(note.step, note.error);
    started.group = note.pid;
  }
}

// A first: then B is the launcher's own child and its id cannot be anybody else's.
void destroy(const Started& started) {
  syscall(SYS_pidfd_send_signal, started.pidfd, SIGKILL, nullptr, 0);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(started.shepherd), &info, WEXITED);
  close(started.pidfd);
}

}  // namespace

Failure start_attempt(const StartSpec& spec, Started& started) {
  Identity identity;
  if (const int error = look_up(spec.user, identity); error != 0) {
    return failure(kLookUpUser, error);
  }
  Descriptors fds;
  if (Failure failed = open_all(spec, fds); failed.error != 0) return failed;
  started = {};
  started.shepherd = clone_into(fds.shepherd_cgroup, &started.pidfd);
  if (started.shepherd < 0) return failure("fork", errno);
  if (started.shepherd == 0) run_shepherd({.spec = spec, .identity = identity, .fds = fds});
  close(fds.notes[1]);
  fds.notes[1] = -1;
  Failure failed = read_notes(fds.notes[0], started);
  if (failed.error != 0) destroy(started);
  return failed;
}

}  // namespace score::launcher
