#include "scored/node/link/thaw_guard.hpp"

#include "base/os/log.hpp"
#include "scored/privileged/thaw/guard.hpp"

#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace score::node {

namespace {

// Finds scored-thaw in the build tree or where it is installed.
Result<std::string> find_program() {
  auto path = find_beside("scored-thaw", {".", "../libexec/scored"});
  if (!path.empty()) return path;
  return fail(Errc::NotFound, "cannot find scored-thaw next to scored in {}",
              own_directory().native());
}

itimerspec timer_of(Duration time) {
  constexpr Duration::rep kSecond = std::nano::den;
  itimerspec at{};
  at.it_value = {.tv_sec = time.count() / kSecond, .tv_nsec = time.count() % kSecond};
  return at;
}

}  // namespace

ThawGuard::ThawGuard(std::string cgroup_root)
    : cgroup_root_(std::move(cgroup_root)),
      lease_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

Status ThawGuard::start() {
  const auto program = find_program();
  if (!program) return program.error();
  int pair[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    return fail(errno_code(errno), "cannot make a socket pair");
  }
  UniqueFd theirs(pair[1]);
  socket_ = UniqueFd(pair[0]);
  // The messages wait in the socket, because this daemon may be gone before the guard has read any.
  for (const pid_t group : groups_) send_group(group, true);
  SpawnSpec spec;
  spec.path = *program;
  spec.argv = {"scored-thaw", "--guard", cgroup_root_.empty() ? "none" : cgroup_root_};
  spec.fds = {{STDERR_FILENO, STDERR_FILENO},
              {theirs.get(), thaw::kDaemonFd},
              {lease_.get(), thaw::kLeaseFd}};
  spec.directory.assign(1, '/');
  spec.new_session = true;
  auto started = spawn(spec);
  if (!started) return started.error().with_context("cannot start {}", *program);
  process_ = *std::move(started);
  return {};
}

bool ThawGuard::has_ended() {
  if (process_.pid <= 0) return true;
  const auto ended = reap(process_.pidfd.get(), false);
  if (ended && !*ended) return false;
  process_ = {};
  return true;
}

void ThawGuard::renew(Duration lease) {
  const auto at = timer_of(lease);
  timerfd_settime(lease_.get(), 0, &at, nullptr);
  if (lease == Duration{0} || !has_ended()) return;
  const auto started = start();
  if (!started && !std::exchange(has_logged_failure_, true)) {
    log_error("Cannot start the guard; jobs may stay frozen if this daemon is killed",
              kv("err", started.error()));
  }
}

void ThawGuard::watch(pid_t group, bool is_watched) {
  if (group <= 1) return;
  is_watched ? void(groups_.insert(group)) : void(groups_.erase(group));
  send_group(group, is_watched);
}

void ThawGuard::send_group(pid_t group, bool is_watched) const {
  const thaw::WatchedGroup packet{.group = group, .is_watched = is_watched ? 1U : 0U};
  if (socket_) send(socket_.get(), &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace score::node
