// scored-rings opens Ethernet rings for the node daemon. The launcher starts it as root next to
// itself. It keeps the capabilities that rings need, and none that would let it act as a user.
#include "scored/privileged/rings/ring_bounds.hpp"
#include "scored/privileged/rings/rings.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using score::launcher::StartReply;
using score::rings::RingFailure;
using score::rings::RingRequest;

constexpr std::uint32_t kMostChannel = 0xffff;

bool give_up_capabilities() {
  std::uint64_t kept = 0;
  for (const unsigned one : {CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF}) {
    kept |= std::uint64_t{1} << one;
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct now[2] = {};
  if (syscall(SYS_capget, &header, now) != 0) return false;
  for (unsigned half = 0; half < 2; ++half) {
    now[half].permitted &= static_cast<std::uint32_t>(kept >> (32 * half));
    now[half].effective = now[half].permitted;
    now[half].inheritable = 0;
  }
  return syscall(SYS_capset, &header, now) == 0;
}

bool answer(int daemon, std::uint64_t attempt, const RingFailure& failure, int ring) {
  StartReply reply;
  reply.error = static_cast<std::uint32_t>(failure.error);
  reply.attempt = attempt;
  memcpy(reply.step, failure.step, sizeof reply.step);
  iovec block{.iov_base = &reply, .iov_len = sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof ring)] = {};
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  if (ring >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof ring);
    memcpy(CMSG_DATA(part), &ring, sizeof ring);
  }
  return sendmsg(daemon, &message, MSG_NOSIGNAL) == sizeof reply;
}

bool open_ring(score::rings::Rings& rings, int daemon, const RingRequest& request) {
  RingFailure failure;
  int ring = -1;
  if (request.attempt == 0 || request.channel > kMostChannel) {
    score::rings::fail(failure, EINVAL, "no such attempt or channel");
  } else {
    ring = rings.open(request, failure);
  }
  const bool is_taken = answer(daemon, request.attempt, failure, ring);
  if (ring >= 0) close(ring);
  return is_taken;
}

void serve(score::rings::Rings& rings, int daemon) {
  for (;;) {
    RingRequest request;
    const ssize_t got = recv(daemon, &request, sizeof request, MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    const bool is_whole = got == sizeof request && request.magic == score::rings::kMagic &&
                          request.version == score::rings::kVersion;
    if (!is_whole || !open_ring(rings, daemon, request)) return;
  }
}

// The launcher has checked that only root may write in the directory.
int listen_in(const char* directory, uid_t daemon_user) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length =
      snprintf(address.sun_path, sizeof address.sun_path, "%s/rings.sock", directory);
  if (static_cast<std::size_t>(length) >= sizeof address.sun_path) return -1;
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  unlink(address.sun_path);
  umask(0177);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (daemon_user != geteuid() &&
       lchown(address.sun_path, daemon_user, static_cast<gid_t>(-1)) != 0) ||
      listen(listener, 1) != 0) {
    return -1;
  }
  return listener;
}

// Lets this process be killed when its launcher ends. The kernel forgets this request at an exec or
// a setuid that gains capabilities, so it is made after them.
bool end_with(pid_t launcher) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == launcher;
}

}  // namespace

int main(int argc, char** argv) {
  unsigned daemon_user = 0;
  int launcher = 0;
  if (argc != 4 || sscanf(argv[3], "%u,%d", &daemon_user, &launcher) != 2) {
    fputs("usage: scored-rings INTERFACE DIRECTORY UID,PID (started by scored-launcher)\n", stderr);
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  const int listener = listen_in(argv[2], daemon_user);
  if (listener < 0 || !give_up_capabilities() || !end_with(launcher)) {
    perror("scored-rings: listen");
    return 1;
  }
  score::rings::Rings rings(argv[1]);
  for (;;) {
    const int daemon = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (daemon < 0) continue;
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool is_known = getsockopt(daemon, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (is_known && peer.uid == daemon_user) serve(rings, daemon);
    close(daemon);
  }
}
