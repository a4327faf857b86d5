// scored-thaw ensures that no job stays frozen when a daemon of its node is gone or hangs.
//
//   scored-thaw [--cgroup-root DIR]   thaws every job below DIR once (default: below the own cgroup
//                                     and that of scored-jobs.service)
//   scored-thaw --guard DIR|none      started by the node daemon, as its user
//
// The guard is a process next to the node daemon without any other work. So it never waits for a
// user database, a child or a disk, and failures of the launcher do not affect it. It thaws when
// the lease expires, which the daemon renews only while its switcher's thread makes progress, and
// when the daemon is gone. Then it ends, and the next daemon starts its own guard.
#include "scored/privileged/thaw/guard.hpp"
#include "scored/privileged/thaw/thaw.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

using score::thaw::kDaemonFd;
using score::thaw::kLeaseFd;
using score::thaw::Places;
using score::thaw::WatchedGroup;

constexpr int kBadUsage = 2;

Places g_places;
int g_groups[score::thaw::kMaxGroups];

bool is_lease_running() {
  itimerspec left{};
  return timerfd_gettime(kLeaseFd, &left) == 0 &&
         (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0);
}

void thaw_all(const char* why) {
  int groups = 0;
  for (const int group : g_groups) {
    if (group > 1 && kill(-group, SIGCONT) == 0) ++groups;
  }
  const int cgroups = thaw_cgroups(g_places);
  if (why == nullptr || cgroups + groups == 0) return;
  const char* priority = isatty(STDERR_FILENO) != 0 ? "" : "<4>";
  fprintf(stderr, "%sThawed every job: the node daemon %s cgroups=%d groups=%d\n", priority, why,
          cgroups, groups);
}

void note(const WatchedGroup& told) {
  int* free_place = nullptr;
  for (int& group : g_groups) {
    if (group == told.group) group = 0;
    if (group == 0) free_place = &group;
  }
  if (told.is_watched != 0 && free_place != nullptr) *free_place = told.group;
}

// Reads all packets that the daemon has sent so far. Returns false if the daemon is gone.
bool read_packets() {
  for (;;) {
    WatchedGroup told;
    const ssize_t got = recv(kDaemonFd, &told, sizeof told, MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    if (got == sizeof told) note(told);
  }
}

int guard() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  prctl(PR_SET_NAME, "scored-thaw", 0, 0, 0);
  for (;;) {
    pollfd polled[] = {{kDaemonFd, POLLIN, 0}, {kLeaseFd, POLLIN, 0}};
    if (poll(polled, 2, -1) <= 0) continue;
    // Packets are read before the lease, because a group that the daemon has reported must not stay
    // stopped.
    if (!read_packets()) {
      // Without a lease the daemon has ended in good order, or its jobs have been thawed already.
      // Thawing again makes sure.
      thaw_all(is_lease_running() ? "is gone" : nullptr);
      return 0;
    }
    if (polled[1].revents != 0) {
      const itimerspec never{};
      timerfd_settime(kLeaseFd, 0, &never, nullptr);  // also clears its expiration
      thaw_all("is silent");
    }
  }
}

int fail(const char* what, const char* value) {
  fprintf(stderr, "scored-thaw: %s %s: %s\n", what, value, strerror(errno));
  return 1;
}

// Thaws as the daemon's unit does after the daemon has ended.
int thaw_units() {
  if (open_jobs_unit(g_places)) thaw_all(nullptr);
  if (!open_places(nullptr, g_places)) return fail("cannot open", "own cgroup");
  thaw_all(nullptr);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool guards = argc == 3 && strcmp(argv[1], "--guard") == 0;
  const bool has_root = argc == 3 && strcmp(argv[1], "--cgroup-root") == 0;
  if (argc != 1 && !guards && !has_root) {
    fputs("usage: scored-thaw [--cgroup-root DIR]\n", stderr);
    return kBadUsage;
  }
  if (argc == 1) return thaw_units();
  const char* root = argv[2];
  if (guards && strcmp(root, "none") == 0) return guard();
  if (!open_places(root, g_places)) return fail("cannot open", root);
  if (guards) return guard();
  thaw_all(nullptr);
  return 0;
}
