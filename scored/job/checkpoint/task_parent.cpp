// scored-task-parent is what the spawner of a job that may be saved becomes: the parent of the
// tasks, and the root of the tree that criu saves. It reports each child that has ended to the
// shepherd.
#include "scored/job/tasks/spawn_wire.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using score::shepherd::SpawnReply;

std::int32_t number(long long value) {
  constexpr long long kMost = 0x7fffffff;
  return static_cast<std::int32_t>(std::clamp(value, 0LL, kMost));
}

std::int32_t milliseconds(const timeval& time) {
  return number(time.tv_sec * 1'000LL + time.tv_usec / 1'000);
}

}  // namespace

int main() {
  for (const int ignored : {SIGHUP, SIGINT, SIGTERM, SIGPIPE}) signal(ignored, SIG_IGN);
  for (;;) {
    siginfo_t info{};
    rusage used{};
    if (syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, &used) != 0) {
      if (errno == EINTR) continue;
      return 0;  // no child is left
    }
    SpawnReply report{.kind = SpawnReply::Kind::Ended};
    report.pid = info.si_pid;
    report.count = info.si_code == CLD_EXITED ? 0 : 1;
    report.error = info.si_status;
    report.pids = {milliseconds(used.ru_utime), milliseconds(used.ru_stime), number(used.ru_maxrss),
                   number(used.ru_minflt + used.ru_majflt)};
    if (send(score::shepherd::kSpawnFd, &report, sizeof report, MSG_NOSIGNAL) < 0) return 1;
  }
}
