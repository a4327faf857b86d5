#include "scored/job/tasks/children.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// A child that was not reaped keeps its pid and its group's number from being assigned again, so
// neither signal can reach an unrelated process. The group is killed first, at once and as a whole,
// because a process that forks without end would outrun an iteration over its children.

namespace score::shepherd {

namespace {

constexpr std::size_t kMaxListBytes = 4U << 20U;

}  // namespace

void become_subreaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> pids;
  const auto text = base::read_file("/proc/thread-self/children", kMaxListBytes);
  if (!text) return pids;
  for (const auto word : base::split(*text, ' ')) {
    if (auto pid = base::parse_number<pid_t>(word)) pids.push_back(*pid);
  }
  return pids;
}

std::size_t kill_children(std::span<const pid_t> spared) {
  auto pids = children_of_this_process();
  std::erase_if(pids, [&](pid_t pid) { return std::ranges::find(spared, pid) != spared.end(); });
  for (const pid_t pid : pids) {
    const pid_t group = getpgid(pid);
    if (group > 1 && group != getpgrp()) kill(-group, SIGKILL);
    kill(pid, SIGKILL);
  }
  return pids.size();
}

void reap_children() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

}  // namespace score::shepherd
