#include "scored/launcher/server.hpp"

#include "scored/launcher/thaw.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kSweepMs = 20;
constexpr int kFirstFreeFd = 10;  // as in start.cpp: children use the numbers below

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

[[gnu::format(printf, 2, 3)]] void say(int priority, const char* format, ...) {
  char line[512];
  const int start = isatty(2) != 0 ? 0 : snprintf(line, sizeof line, "<%d>", priority);
  va_list arguments;
  va_start(arguments, format);
  const std::size_t room = sizeof line - static_cast<std::size_t>(start) - 1;
  const int length = vsnprintf(line + start, room, format, arguments);
  va_end(arguments);
  const std::size_t used =
      static_cast<std::size_t>(start) + std::min(room - 1, static_cast<std::size_t>(length));
  line[used] = '\n';
  [[maybe_unused]] const ssize_t written = write(2, line, used + 1);
}

int high(int fd) {
  if (fd < 0 || fd >= kFirstFreeFd) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
  close(fd);
  return moved;
}

bool is_listening_unix_socket(int fd) {
  int listening = 0;
  int domain = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return false;
  size = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  return listening == 1 && domain == AF_UNIX;
}

bool own_oom_score_set() {
  FILE* file = fopen("/proc/self/oom_score_adj", "re");
  int score = 0;
  if (file == nullptr) return false;
  const bool is_set = fscanf(file, "%d", &score) == 1 && score != 0;
  fclose(file);
  return is_set;
}

// At most one descriptor; more than one: all are closed and -2 returned.
int take_descriptor(msghdr& message) {
  int taken = -1;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (taken == -1) {
        taken = fd;
      } else {
        close(fd);
        if (taken >= 0) close(taken);
        taken = -2;
      }
    }
  }
  return taken;
}

}  // namespace

bool Server::start() {
  null_device_ = high(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null_device_ < 0) {
    say(3, "open failed path=/dev/null err=\"%s\"", strerror(errno));
    return false;
  }
  if (options_.cgroup_root != nullptr && strcmp(options_.cgroup_root, "auto") != 0) {
    cgroup_root_ = high(open_cgroup_root(options_.cgroup_root));
    if (cgroup_root_ < 0) {
      say(3, "open failed cgroup_root=%s err=\"%s\"", options_.cgroup_root, strerror(errno));
      return false;
    }
  }
  reset_oom_score_ = own_oom_score_set();
  return listen_on_socket();
}

bool Server::listen_on_socket() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length =
      snprintf(address.sun_path, sizeof address.sun_path, "%s/launcher.sock", options_.rundir);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof address.sun_path) {
    say(3, "refuse rundir: path too long for a socket rundir=%s", options_.rundir);
    return false;
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  listener_ = high(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(listener_, generic, sizeof address) == 0) {
    say(3, "stop: another launcher listens path=%s", address.sun_path);
    return false;
  }
  unlink(address.sun_path);
  const mode_t before = umask(0177);
  const bool bound = bind(listener_, generic, sizeof address) == 0;
  umask(before);
  // lchown: the directory may belong to the daemon's user, who may put a link there.
  const bool given =
      bound && (geteuid() == options_.daemon_user ||
                lchown(address.sun_path, options_.daemon_user, static_cast<gid_t>(-1)) == 0);
  if (!given || listen(listener_, 8) != 0) {
    say(3, "listen failed path=%s err=\"%s\"", address.sun_path, strerror(errno));
    return false;
  }
  return true;
}

void Server::run() {
  for (;;) turn();
}

void Server::turn() {
  pollfd polled[Shepherds::kMax + 2];
  polled[0] = {.fd = daemon_ >= 0 ? daemon_ : listener_, .events = POLLIN, .revents = 0};
  polled[1] = {.fd = lease_, .events = POLLIN, .revents = 0};
  const std::size_t count = shepherds_.fill(polled + 2);
  const bool soon = shepherds_.sweep();
  if (poll(polled, count + 2, soon ? kSweepMs : -1) <= 0) return;
  shepherds_.handle(polled + 2, count);
  if (polled[1].revents != 0) thaw("silent");
  if (polled[0].revents != 0) daemon_ >= 0 ? read_packet() : accept_daemon();
}

void Server::accept_daemon() {
  const int accepted = high(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted < 0) return;
  socklen_t size = sizeof peer_;
  peer_ = {};
  const bool known = getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer_, &size) == 0;
  daemon_ = accepted;
  if (!known || peer_.uid != options_.daemon_user) return drop("not the daemon's user");
  if (options_.cgroup_root == nullptr) return;
  if (cpu_root_ >= 0) close(cpu_root_);
  cpu_root_ = high(open_cpu_root_of(peer_.pid));
  if (strcmp(options_.cgroup_root, "auto") != 0) return;
  if (cgroup_root_ >= 0) close(cgroup_root_);
  cgroup_root_ = high(open_cgroup_of(peer_.pid));
}

void Server::drop(const char* why) {
  if (daemon_ >= 0) close(daemon_);
  daemon_ = -1;
  if (why == nullptr) return;
  ++refused_;
  const std::int64_t now = now_ns();
  if (last_complaint_ns_ != 0 && now - last_complaint_ns_ < kSecondNs) return;
  last_complaint_ns_ = now;
  say(4, "refuse connection why=\"%s\" pid=%d uid=%u refused=%llu", why, peer_.pid, peer_.uid,
      static_cast<unsigned long long>(refused_));
}

void Server::read_packet() {
  Request request;
  iovec block{.iov_base = &request, .iov_len = sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(daemon_, &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const int fd = got > 0 ? take_descriptor(message) : -1;
  const bool whole = got == sizeof request && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (got <= 0) {
    drop(nullptr);
    if (has_lease()) thaw("lost");
  } else if (!whole || fd == -2 || request.magic != kMagic || request.version != kVersion) {
    drop("malformed packet");
  } else {
    on_request(request, fd);
  }
  if (fd >= 0) close(fd);
}

void Server::on_request(const Request& request, int fd) {
  switch (request.op) {
    case Op::Launch:
      launch(request, fd);
      return;
    case Op::Forget:
      shepherds_.forget(request.attempt);
      return;
    case Op::Ring:
      open_ring(request);
      return;
    case Op::Lease:
      take_lease(fd);
      return;
  }
  drop("unknown request");
}

Failure Server::check(const Request& request, int fd) const {
  const auto refuse = [](int error, const char* why) {
    Failure failure{.error = error};
    snprintf(failure.step, sizeof failure.step, "%s", why);
    return failure;
  };
  if (request.attempt == 0) return refuse(EINVAL, "attempt 0");
  if (fd < 0 || !is_listening_unix_socket(fd)) return refuse(ENOTSOCK, "no listening socket");
  if (request.user == 0 && !options_.allow_root) return refuse(EPERM, "job of uid 0");
  if (geteuid() != 0 && request.user != geteuid()) return refuse(EPERM, "job of another user");
  if (request.in_cgroups != 0 && cgroup_root_ < 0) return refuse(ENOTSUP, "no cgroup root");
  if (request.in_cgroups > 2) return refuse(EINVAL, "unknown cgroups");
  if (request.in_cgroups == 2 && cpu_root_ < 0) return refuse(ENOTSUP, "no cpu directory");
  if (shepherds_.has(request.attempt)) return refuse(EEXIST, "attempt runs already");
  if (shepherds_.full()) return refuse(EBUSY, "too many attempts");
  return {};
}

void Server::launch(const Request& request, int fd) {
  Started started;
  Failure failure = check(request, fd);
  if (failure.error == 0) {
    const int listener = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
    const StartSpec spec{.attempt = request.attempt,
                         .user = request.user,
                         .listener = listener,
                         .cgroup_root = request.in_cgroups != 0 ? cgroup_root_ : -1,
                         .cpu_root = request.in_cgroups == 2 ? cpu_root_ : -1,
                         .null_device = null_device_,
                         .shepherd = options_.shepherd,
                         .low_priority = request.low_priority != 0,
                         .reset_oom_score = reset_oom_score_};
    failure = start_attempt(spec, started);
    if (listener >= 0) close(listener);
    if (failure.error == 0) {
      shepherds_.add(request.attempt, started);
      // Its cgroup is thawed, and its tasks leave the group.
      if (request.in_cgroups != 0) shepherds_.forget(request.attempt);
    } else {
      shepherds_.expect_orphans();
    }
  }
  answer(request, failure, started, -1);
}

// Only tasks of an attempt that runs here get a raw socket.
void Server::open_ring(const Request& request) {
  Failure failure;
  int ring = -1;
  if (options_.interface == nullptr) {
    failure.error = EPERM;
    snprintf(failure.step, sizeof failure.step, "no --network-interface");
  } else if (!shepherds_.has(request.attempt) || request.channel > 0xffff) {
    failure.error = EINVAL;
    snprintf(failure.step, sizeof failure.step, "no such attempt or channel");
  } else {
    ring = rings_.open(request, failure);
    if (ring >= 0 && failure.error != 0) report_without_xdp(failure);
  }
  answer(request, failure, {}, ring);
  if (ring >= 0) close(ring);
}

// The ring serves all the same. Once per reason.
void Server::report_without_xdp(Failure& failure) {
  if (failure.error != without_xdp_.error || strcmp(failure.step, without_xdp_.step) != 0) {
    say(4, "open packet rings in place of AF_XDP interface=%s: %s: %s", options_.interface,
        failure.step, strerror(failure.error));
  }
  without_xdp_ = failure;
  failure = {};
}

void Server::answer(const Request& request, const Failure& failure, const Started& started,
                    int fd) {
  Reply reply;
  reply.error = static_cast<std::uint32_t>(failure.error);
  reply.attempt = request.attempt;
  memcpy(reply.step, failure.step, sizeof reply.step);
  if (failure.error == 0) {
    reply.shepherd_pid = started.shepherd;
    reply.group = started.group;
  }
  // A daemon that does not take its answers has its attempts still: it finds their sockets.
  iovec block{.iov_base = &reply, .iov_len = sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
  }
  if (sendmsg(daemon_, &message, MSG_NOSIGNAL) != sizeof reply) drop("answer not taken");
}

// The descriptor is the daemon's too: it is polled and set, but never read, which could wait.
void Server::take_lease(int fd) {
  itimerspec left{};
  if (fd < 0 || timerfd_gettime(fd, &left) != 0) return drop("the lease is no timer");
  if (lease_ >= 0) close(lease_);
  lease_ = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
}

bool Server::has_lease() const {
  itimerspec left{};
  return lease_ >= 0 && timerfd_gettime(lease_, &left) == 0 &&
         (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0);
}

void Server::thaw(const char* what) {
  const itimerspec never{};
  timerfd_settime(lease_, 0, &never, nullptr);  // also forgets that it fired
  const int cgroups = cgroup_root_ >= 0 ? thaw_cgroups(cgroup_root_, cpu_root_) : 0;
  const int groups = shepherds_.continue_all();
  say(4, "thaw every job: the node daemon is %s cgroups=%d groups=%d", what, cgroups, groups);
}

}  // namespace score::launcher
