// There are two or three forks per attempt. They use clone3 with CLONE_INTO_CGROUP, so that a child
// is born in its cgroup. Moving it by a write to cgroup.procs would wait for an RCU grace period
// under the lock that every freeze of every node on the machine takes. Containers refuse clone3,
// often with ENOSYS; the child then moves itself before it does anything else. The children do all
// work that may wait.
#include "scored/privileged/launcher/start.hpp"

#include "scored/privileged/launcher/identity.hpp"

#include <climits>

#include <cerrno>
#include <csignal>
#include <cstdio>
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

struct Child {
  const Launch& launch;
  int notes = -1;
  UserIdentity identity{};
};

// A note is below PIPE_BUF, so it arrives whole.
[[noreturn]] void give_up(const Child& child, const char* step) {
  StartReply note{.error = static_cast<std::uint32_t>(errno != 0 ? errno : EIO)};
  snprintf(note.step, sizeof note.step, "%s", step);
  [[maybe_unused]] const ssize_t sent = write(child.notes, &note, sizeof note);
  _exit(127);
}

void must(bool done, const Child& child, const char* step) {
  if (!done) give_up(child, step);
}

// Moves this process, which has one thread, into one of the attempt's cgroups, if it has any.
void join(const Child& child, int place, const char* file) {
  const int cgroup = child.launch.places[place];
  const int members = openat(cgroup, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  must(cgroup < 0 || (members >= 0 && write(members, "0", 1) == 1), child, "join the cgroup");
}

// Forks a process into one of the attempt's cgroups, if it has any.
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

// Places the descriptors so that only 0, 1, 2 and these survive exec. closefrom() reads /proc where
// close_range is refused.
void place_descriptors(Child& child, int listener, int pair, int helpers) {
  must(listener < 0 || dup2(listener, kListenerFd) == kListenerFd, child, "dup2");
  must(dup2(pair, kPairFd) == kPairFd, child, "dup2");
  must(helpers < 0 || dup2(helpers, kHelpersFd) == kHelpersFd, child, "dup2");
  must(dup3(child.notes, kNotesFd, O_CLOEXEC) == kNotesFd, child, "dup3");
  child.notes = kNotesFd;
  closefrom(kNotesFd + 1);
}

// Resets all state that is inherited from the launcher, except its log.
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

[[noreturn]] void execute(const Child& child, const char* role) {
  reset_state(child);
  if (const char* failed = become(child.identity)) give_up(child, failed);
  const char* argv[] = {"scored-shepherd", role, nullptr};
  execve(child.launch.shepherd, const_cast<char* const*>(argv), child.identity.environment);
  give_up(child, "exec the shepherd");
}

// In version 1, a write to `tasks` moves a thread without the wait that a write to cgroup.procs
// costs.
[[noreturn]] void run_spawner(Child& child, int pair, const char* role) {
  for (int place = kVersion1; place < kPlaces; ++place) join(child, place, "tasks");
  must(setsid() >= 0, child, "setsid");
  place_descriptors(child, -1, pair, -1);
  if (child.launch.request.low_priority != 0) setpriority(PRIO_PROCESS, 0, kLowPriority);
  execute(child, role);
}

// Forks B or C into its cgroup. `end` becomes A's end of their socket.
pid_t fork_spawner(Child& child, int place, const char* role, int& end) {
  int pair[2];
  int pidfd = -1;
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, child, "socketpair");
  const pid_t spawner = fork_into(child, place, &pidfd);
  if (spawner == 0) run_spawner(child, pair[1], role);
  must(spawner > 0, child, "fork into the cgroup");
  end = pair[0];
  return spawner;
}

// Runs a program from the directory of the shepherd: an exec as root has the capabilities that the
// launcher has given up. Before B is forked it is the only child.
void assist(const Child& child, const char* program, const char* word) {
  char path[PATH_MAX + 32];
  snprintf(path, PATH_MAX, "%s", child.launch.shepherd);
  snprintf(strrchr(path, '/') + 1, 32, "%s", program);
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

[[noreturn]] void run_shepherd(Child child) {
  must(setsid() >= 0, child, "setsid");
  setpriority(PRIO_PROCESS, 0, 0);
  must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, child, "subreaper");
  const StartRequest& request = child.launch.request;
  must((errno = look_up(request.user, child.identity)) == 0, child, kLookUpUser);
  if (request.denied[0] != '\0') assist(child, "scored-device-guard", request.denied);
  char user[16];
  snprintf(user, sizeof user, "%u", request.user);
  if (request.scratch != 0) assist(child, "scored-scratch-directory", user);
  int tasks = -1;
  int helpers = -1;
  const StartReply note{.group = fork_spawner(child, kTasksCgroup, "spawner", tasks)};
  if (request.scratch != 0) fork_spawner(child, kHelpersCgroup, "helpers", helpers);
  must(write(child.notes, &note, sizeof note) == sizeof note, child, "write");
  place_descriptors(child, child.launch.places[kListener], tasks, helpers);
  execute(child, "shepherd");
}

}  // namespace

int start(const Launch& launch, StartedShepherd& started) {
  int notes[2] = {-1, -1};
  if (pipe2(notes, O_CLOEXEC) != 0) return errno;
  started.notes = notes[0];
  const Child child{.launch = launch, .notes = notes[1]};
  started.shepherd = fork_into(child, kShepherdCgroup, &started.pidfd);
  const int failed = started.shepherd < 0 ? errno : 0;
  if (started.shepherd == 0) run_shepherd(child);
  close(notes[1]);
  if (failed != 0) close(notes[0]);
  return failed;
}

}  // namespace score::launcher
