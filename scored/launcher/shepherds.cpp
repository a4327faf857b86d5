// A shepherd is a subreaper and so is the launcher: when a shepherd ends before its tasks, they and
// everything they forked become the launcher's children. A child that is no shepherd can only be
// such a leftover, so it is killed. Being the launcher's unreaped child, its id cannot belong to
// anybody else.
#include "scored/launcher/shepherds.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::launcher {

bool Shepherds::has(std::uint64_t attempt) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].attempt == attempt) return true;
  }
  return false;
}

bool Shepherds::is_shepherd(pid_t pid) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].shepherd == pid) return true;
  }
  return false;
}

void Shepherds::add(std::uint64_t attempt, const Started& started) {
  entries_[count_++] = {attempt, started.shepherd, started.group, started.pidfd};
}

void Shepherds::forget(std::uint64_t attempt) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].attempt == attempt) entries_[i].group = 0;
  }
}

int Shepherds::continue_all() const {
  int continued = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].group > 1 && kill(-entries_[i].group, SIGCONT) == 0) ++continued;
  }
  return continued;
}

std::size_t Shepherds::fill(pollfd* polled) const {
  for (std::size_t i = 0; i < count_; ++i) {
    polled[i] = {.fd = entries_[i].pidfd, .events = POLLIN, .revents = 0};
  }
  return count_;
}

void Shepherds::handle(const pollfd* polled, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) {
    if (polled[i].revents == 0) continue;
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(entries_[i].shepherd), &info, WEXITED | WNOHANG);
    close(entries_[i].pidfd);
    entries_[i] = entries_[--count_];
    orphans_ = true;
  }
}

int Shepherds::kill_strangers() const {
  FILE* children = fopen("/proc/thread-self/children", "re");
  if (children == nullptr) return 0;
  int killed = 0;
  int pid = 0;
  while (fscanf(children, "%d", &pid) == 1) {
    if (is_shepherd(pid)) continue;
    kill(pid, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG);
    ++killed;
  }
  fclose(children);
  return killed;
}

bool Shepherds::sweep() {
  if (orphans_) orphans_ = kill_strangers() > 0;
  return orphans_;
}

}  // namespace score::launcher
