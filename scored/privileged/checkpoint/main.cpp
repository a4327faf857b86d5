// scored-checkpoint has two uses. `start`: the launcher's child runs it as root; it makes the
// namespaces of one attempt that may be saved, starts the attempt there as its user, and waits for
// its end. `serve`: it runs as the job's user in these namespaces with two capabilities, and runs
// criu with them, which can reach only the processes of the attempt.
#include "scored/privileged/checkpoint/attempt.hpp"
#include "scored/privileged/checkpoint/server.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::checkpoint {
namespace {

constexpr int kShepherd = 4;

pid_t g_first = 0;

void pass_on(int signal) {
  kill(g_first, signal);
}

// Waits outside the namespaces as the job's user. The kernel kills the attempt with this process.
[[noreturn]] void wait_for_attempt(uid_t user) {
  launcher::UserIdentity identity;
  closefrom(STDERR_FILENO + 1);
  signal(SIGTERM, pass_on);
  if (launcher::look_up(user, identity) != 0 || launcher::become(identity) != nullptr) _exit(1);
  int status = 0;
  while (waitpid(g_first, &status, 0) < 0 && errno == EINTR) continue;
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

bool enter_namespaces(const launcher::Launch& launch) {
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID) != 0) return false;
  g_first = fork();
  if (g_first > 0) wait_for_attempt(launch.request.user);
  // Mounts of the host still arrive here. Shared memory is the attempt's own: another job may use
  // the names that a restore needs, and this namespace does not show whether it does.
  return g_first == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 &&
         mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0;
}

}  // namespace
}  // namespace score::checkpoint

int main(int argc, char** argv) {
  using namespace score;
  const bool starts = argc == 3 && strcmp(argv[1], "start") == 0;
  if (argc == 3 && strcmp(argv[1], "serve") == 0)
    return checkpoint::serve(checkpoint::kShepherd, argv[2]);
  launcher::Launch launch{};
  if (!starts || !checkpoint::take_launch(launch, argv[2])) return 2;
  const pid_t outside = getpid();
  if (!checkpoint::enter_namespaces(launch)) checkpoint::fail_attempt("make its namespaces");
  checkpoint::run_attempt(launch, outside);
}
