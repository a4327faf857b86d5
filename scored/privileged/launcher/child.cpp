// There are two or three forks per attempt. They use clone3 with CLONE_INTO_CGROUP, so that a child
// is born in its cgroup. Moving it by a write to cgroup.procs would wait for an RCU grace period
// under the lock that every freeze of every node on the machine takes. Containers refuse clone3,
// often with ENOSYS; the child then moves itself before it does anything else. The children do all
// work that may wait.
#include "scored/privileged/launcher/child.hpp"

#include <climits>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr int kListenerFd = 3;
constexpr int kPairFd = 4;
constexpr int kHelpersFd = 5;
constexpr int kNotesFd = 6;  // until exec
constexpr int kLowPriority = 10;

// Moves this process, which has one thread, into one of the attempt's cgroups, if it has any.
void join(const Child& child, int place, const char* file) {
  const int cgroup = child.launch.places[place];
  const int members = openat(cgroup, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  must(cgroup < 0 || (members >= 0 && write(members, "0", 1) == 1), child, "join the cgroup");
}

}  // namespace

// A note is below PIPE_BUF, so it arrives whole.
void give_up(const Child& child, const char* step) {
  StartReply note{.error = static_cast<std::uint32_t>(errno != 0 ? errno : EIO)};
  snprintf(note.step, sizeof note.step, "%s", step);
  [[maybe_unused]] const ssize_t sent = write(child.notes, &note, sizeof note);
  _exit(127);
}

void must(bool done, const Child& child, const char* step) {
  if (!done) give_up(child, step);
}

void reset_state(const Child& child) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(022);
  must(chdir("/") == 0, child, "chdir /");
  // A launcher that the kernel spares when memory is short must not pass that protection on to its
  // children.
  const int score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  char sign = 0;
  if (read(score, &sign, 1) == 1 && sign == '-') {
    must(write(score, "0", 1) == 1, child, "reset oom_score_adj");
  }
  close(score);
}

pid_t fork_into(const Child& child, int place, int* pidfd) {
  const int cgroup = child.launch.places[place];
  clone_args args{};
  args.flags = CLONE_PIDFD | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0U);
  args.pidfd = reinterpret_cast<std::uintptr_t>(pidfd);
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(cgroup);
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid >= 0 || (errno != ENOSYS && errno != EPERM)) return pid;
  pid = static_cast<pid_t>(syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, pidfd, 0, 0));
  if (pid == 0) join(child, place, "cgroup.procs");
  return pid;
}

// closefrom() reads /proc where close_range is refused.
void place_descriptors(Child& child, int listener, int pair, int helpers) {
  must(listener < 0 || dup2(listener, kListenerFd) == kListenerFd, child, "dup2");
  must(dup2(pair, kPairFd) == kPairFd, child, "dup2");
  must(helpers < 0 || dup2(helpers, kHelpersFd) == kHelpersFd, child, "dup2");
  must(dup3(child.notes, kNotesFd, O_CLOEXEC) == kNotesFd, child, "dup3");
  child.notes = kNotesFd;
  closefrom(kNotesFd + 1);
}

void execute(const Child& child, const char* role) {
  reset_state(child);
  if (const char* failed = become(child.identity)) give_up(child, failed);
  const char* argv[] = {"scored-shepherd", role, child.outside, child.restores, nullptr};
  execve(child.launch.shepherd, const_cast<char* const*>(argv), child.identity.environment);
  give_up(child, "exec the shepherd");
}

namespace {

// In version 1, a write to `tasks` moves a thread without the wait that a write to cgroup.procs
// costs.
[[noreturn]] void run_spawner(Child& child, int pair, const Program& program) {
  for (int place = kVersion1; place < kPlaces; ++place) join(child, place, "tasks");
  must(setsid() >= 0, child, "setsid");
  place_descriptors(child, -1, pair, -1);
  if (child.launch.request.low_priority != 0) setpriority(PRIO_PROCESS, 0, kLowPriority);
  program.run(child, program.role);
  _exit(127);
}

}  // namespace

pid_t fork_spawner(Child& child, int place, const Program& program, int& end) {
  int pair[2];
  int pidfd = -1;
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, child, "socketpair");
  const pid_t spawner = fork_into(child, place, &pidfd);
  if (spawner == 0) run_spawner(child, pair[1], program);
  must(spawner > 0, child, "fork into the cgroup");
  end = pair[0];
  return spawner;
}

void place_program(const Child& child, const char* program, char (&path)[PATH_MAX]) {
  snprintf(path, PATH_MAX - 32, "%s", child.launch.shepherd);
  snprintf(strrchr(path, '/') + 1, 32, "%s", program);
}

void assist(const Child& child, const char* program, const char* word) {
  char path[PATH_MAX];
  place_program(child, program, path);
  int status = fork();
  if (status == 0) {
    dup2(child.launch.places[kTasksCgroup], kPairFd);
    execl(path, path, "--job", "/proc/self/fd/4", word, nullptr);
    _exit(127);  // same status as a shell's if the program cannot be executed
  }
  waitpid(-1, &status, 0);
  errno = WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ENOENT : EPERM;
  must(status == 0, child, program);
}

}  // namespace score::launcher
