#include "scored/privileged/launcher/server.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kStartLimitNs = 8 * kSecondNs;  // the head waits for 8.5 s
constexpr int kLookMs = 20;                            // while something starts or ends

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

int socket_option(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_directory(int fd, uid_t owner, long type) {
  struct stat status {};

  struct statfs info {};

  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == owner &&
         fstatfs(fd, &info) == 0 && info.f_type == type;
}

// Returns true if only root and the launcher's own user can replace a file in the current
// directory.
bool is_own_place() {
  struct stat status {};

  errno = EPERM;
  return stat(".", &status) == 0 && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Ensures that there is one launcher per directory. The lock ends with this process, because a
// forked child does not inherit it. The child does inherit the listening socket, until it executes
// a program.
bool lock() {
  const int file = open("launcher.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

  struct flock whole {};

  whole.l_type = F_WRLCK;
  return file >= 0 && fcntl(file, F_SETLK, &whole) == 0;
}

bool print_error(const char* what, const char* value) {
  fprintf(stderr, "%s%s%s: %s\n", isatty(STDERR_FILENO) != 0 ? "" : "<3>", what, value,
          strerror(errno));
  return false;
}

}  // namespace

bool LauncherServer::start() {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "launcher.sock"};
  if (chdir(options_.rundir) != 0) return print_error("Cannot enter rundir=", options_.rundir);
  if (!is_own_place()) return print_error("Others may write in rundir=", options_.rundir);
  if (!lock()) return print_error("Cannot lock rundir=", options_.rundir);
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(address.sun_path);
  umask(0177);  // children set their own
  return (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
          (options_.daemon_user == geteuid() ||
           lchown(address.sun_path, options_.daemon_user, static_cast<gid_t>(-1)) == 0) &&
          listen(listener_, 8) == 0) ||
         print_error("Cannot listen in rundir=", options_.rundir);
}

void LauncherServer::turn() {
  pollfd polled[1 + 2 * (kMaxShepherds + 1)];
  polled[0] = {.fd = daemon_ >= 0 ? daemon_ : listener_, .events = POLLIN, .revents = 0};
  bool is_busy = has_leftovers_;
  for (std::size_t i = 0; i < count_; ++i) {
    const StartedShepherd& started = children_[i].started;
    polled[1 + 2 * i] = {.fd = started.notes, .events = POLLIN, .revents = 0};
    polled[2 + 2 * i] = {.fd = started.pidfd, .events = POLLIN, .revents = 0};
    is_busy = is_busy || started.notes >= 0;
  }
  if (poll(polled, 1 + 2 * count_, is_busy ? kLookMs : -1) < 0) return;
  for (std::size_t i = count_; i-- > 0;) {
    Child& child = children_[i];
    if (child.started.notes >= 0) {
      watch_start(child, polled[1 + 2 * i].revents != 0);
    } else if (polled[2 + 2 * i].revents != 0) {
      if (child.attempt == 0) exit(1);
      waitpid(child.started.shepherd, nullptr, WNOHANG);
      close(child.started.pidfd);
      child = children_[--count_];
      has_leftovers_ = true;
    }
  }
  if (has_leftovers_) kill_leftovers();
  if (polled[0].revents != 0) daemon_ >= 0 ? read_packet() : accept_daemon();
}

void LauncherServer::accept_daemon() {
  daemon_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (daemon_ < 0) return;
  socklen_t size = sizeof peer_;
  peer_ = {};
  const bool is_known = getsockopt(daemon_, SOL_SOCKET, SO_PEERCRED, &peer_, &size) == 0;
  if (!is_known || peer_.uid != options_.daemon_user) drop("not the daemon's user");
}

// Closes the connection; logs one line per second at most.
void LauncherServer::drop(const char* why) {
  static std::int64_t last = 0;
  static std::uint64_t refused = 0;
  close(daemon_);
  daemon_ = -1;
  if (why == nullptr) return;
  ++refused;
  const std::int64_t now = now_ns();
  if (last != 0 && now - last < kSecondNs) return;
  last = now;
  fprintf(stderr, "%sRefused connection why=\"%s\" pid=%d uid=%u refused=%llu\n",
          isatty(STDERR_FILENO) != 0 ? "" : "<4>", why, peer_.pid, peer_.uid,
          static_cast<unsigned long long>(refused));
}

void LauncherServer::read_packet() {
  StartRequest request;
  iovec block{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(kPlaces * sizeof(int))];
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(kPlaces * sizeof(int));  // the kernel drops further ones
  const ssize_t got = recvmsg(daemon_, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  Launch launch{.request = request, .places = {}, .shepherd = options_.shepherd};
  memset(launch.places, -1, sizeof launch.places);
  const cmsghdr* part = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  const std::size_t size = part != nullptr ? part->cmsg_len - CMSG_LEN(0) : 0;
  if (size > 0 && size <= sizeof launch.places && part->cmsg_type == SCM_RIGHTS) {
    memcpy(launch.places, CMSG_DATA(part), size);
  }
  const bool is_whole = got == sizeof request &&
                        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
                        request.magic == kMagic && request.version == kVersion;
  if (is_whole) start_attempt(launch);
  if (!is_whole) drop(got > 0 ? "malformed packet" : nullptr);
  for (const int fd : launch.places) {
    if (fd >= 0) close(fd);
  }
}

bool LauncherServer::may_start(uid_t user) const {
  if (geteuid() != 0) return user == geteuid();
  for (int i = 0; i < options_.allowed_count; ++i) {
    if (user == options_.allowed[i]) return true;
  }
  return user >= options_.min_uid;
}

// Returns nullptr, or the reason for a refusal with errno set.
const char* LauncherServer::check(const Launch& launch) const {
  const bool listens = socket_option(launch.places[kListener], SO_ACCEPTCONN) == 1 &&
                       socket_option(launch.places[kListener], SO_DOMAIN) == AF_UNIX;
  errno = ENOTSOCK;
  if (!listens) return "no listening socket";
  errno = EINVAL;
  if (launch.request.attempt == 0) return "attempt 0";
  if (launch.request.checkpoint > 2) return "an unknown kind of checkpoint";
  if (launch.request.denied[kDeniedBytes - 1] != '\0') return "devices without end";
  errno = EPERM;
  if (!may_start(launch.request.user)) return "a user whose jobs it may not start";
  for (int i = kShepherdCgroup; i < kPlaces; ++i) {
    const bool may_lack = i >= kVersion1 || launch.places[kShepherdCgroup] < 0;
    if (launch.places[i] < 0 && may_lack) continue;
    const long type = i >= kVersion1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;
    const bool is_its_own = is_directory(launch.places[i], peer_.uid, type);
    errno = EPERM;
    if (!is_its_own) return "no cgroup of the node daemon";
  }
  errno = EEXIST;
  for (std::size_t i = 0; i < count_; ++i) {
    if (children_[i].attempt == launch.request.attempt) return "attempt runs already";
  }
  errno = EBUSY;
  return count_ >= kMaxShepherds ? "too many attempts" : nullptr;
}

void LauncherServer::start_attempt(const Launch& launch) {
  Child child{.attempt = launch.request.attempt, .deadline_ns = now_ns() + kStartLimitNs};
  if (const char* refused = check(launch)) return answer(child, errno, refused);
  const int failed = score::launcher::start(launch, child.started);
  if (failed != 0) return answer(child, failed, "fork into the cgroup");
  children_[count_++] = child;
}

// Waits until both programs run, or one reports why it cannot.
void LauncherServer::watch_start(Child& child, bool is_readable) {
  if (!is_readable && now_ns() < child.deadline_ns) return;
  StartReply note;
  const ssize_t got = is_readable ? read(child.started.notes, &note, sizeof note) : 0;
  if (got == sizeof note && note.error == 0) {
    child.group = note.group;
    return;
  }
  close(child.started.notes);
  child.started.notes = -1;
  if (is_readable && got == 0 && child.group > 0) return answer(child, 0, "");
  if (got == 0) note.error = is_readable ? ECHILD : ETIMEDOUT;
  note.step[sizeof note.step - 1] = '\0';
  kill(child.started.shepherd, SIGKILL);  // it has not been reaped, so the id is its own
  answer(child, static_cast<int>(note.error), got > 0 ? note.step : "start it within 8 s");
}

// A daemon that does not read its replies finds its attempts by their sockets.
void LauncherServer::answer(const Child& child, int error, const char* step) {
  StartReply reply{.error = static_cast<std::uint32_t>(error), .attempt = child.attempt};
  reply.shepherd_pid = error == 0 ? child.started.shepherd : 0;
  reply.group = error == 0 ? child.group : 0;
  snprintf(reply.step, sizeof reply.step, "%s", step);
  const bool is_sent = daemon_ < 0 || send(daemon_, &reply, sizeof reply, MSG_NOSIGNAL) > 0;
  if (!is_sent) drop("answer not taken");
}

// A shepherd is a subreaper and so is the launcher. When a shepherd ends before its tasks, they and
// all processes that they forked become the launcher's children. A child that the launcher did not
// start can only be such a leftover. It has not been reaped, so its id cannot belong to a different
// process. Dying leftovers hand over their own children, so this is repeated until none is left.
void LauncherServer::kill_leftovers() {
  has_leftovers_ = false;
  FILE* all = fopen("/proc/thread-self/children", "re");
  for (int pid = 0; all != nullptr && fscanf(all, "%d", &pid) == 1;) {
    bool is_known = false;
    for (std::size_t i = 0; i < count_; ++i) {
      is_known = is_known || children_[i].started.shepherd == pid;
    }
    if (is_known) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, WNOHANG);
    has_leftovers_ = true;
  }
  if (all != nullptr) fclose(all);
}

}  // namespace score::launcher
