#include "scored/launcher/rings.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/wire/frame.hpp"
#include "scored/ring_guard/bounds.hpp"
#include "scored/ring_guard/bpf.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr const char* kOwnNamespace = "/proc/self/ns/net";
constexpr int kFirstFreeFd = 10;  // as in start.cpp: children use the numbers below
constexpr int kGuardFd = 3;

int fail(Failure& failure, int error, const char* step) {
  failure.error = error;
  snprintf(failure.step, sizeof failure.step, "%s", step);
  return -1;
}

int open_namespace() {
  const int low = open(kOwnNamespace, O_RDONLY | O_CLOEXEC);
  const int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, kFirstFreeFd);
  if (low >= 0) close(low);
  return fd;
}

// To go on in the wrong namespace would be worse than not to go on.
void enter(int space) {
  if (setns(space, CLONE_NEWNET) != 0) abort();
}

// scored-ring-guard, beside this program.
bool find_guard(char* path, std::size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  char* name = strrchr(path, '/') + 1;
  const auto room = static_cast<std::size_t>(path + size - name);
  return static_cast<std::size_t>(snprintf(name, room, "scored-ring-guard")) < room;
}

// It writes what failed to the log. False: it failed.
bool run_guard(const char* program, const char* interface, int space) {
  char own[512];
  if (program == nullptr && find_guard(own, sizeof own)) program = own;
  if (program == nullptr) return false;
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(space, kGuardFd) < 0) _exit(127);
    char descriptor[] = {'0' + kGuardFd, '\0'};
    execl(program, "scored-ring-guard", interface, descriptor, nullptr);
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The kernel does not bind sockets of such a group again.
int fix_binding(int fd) {
  const std::uint32_t kind = PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_UNIQUEID;
  const std::uint32_t group = kind << 16;
  return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof group) == 0 ? 0 : errno;
}

bool is_refused(int fd, int option, const void* value, socklen_t size) {
  return setsockopt(fd, SOL_PACKET, option, value, size) != 0 && errno == EPERM;
}

// Tries what the ring's holder could try. Without bounds it may send nothing yet.
const char* find_hole(int fd, const sockaddr_ll& bound) {
  sockaddr_ll any = bound;
  any.sll_protocol = htons(ETH_P_ALL);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0)
    return "a ring could still bind again";
  const packet_mreq promiscuous{.mr_ifindex = bound.sll_ifindex,
                                .mr_type = PACKET_MR_PROMISC,
                                .mr_alen = 0,
                                .mr_address = {}};
  if (!is_refused(fd, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)) {
    return "a ring could still change an option";
  }
  const char nothing[ETH_ZLEN] = {};
  if (send(fd, nothing, sizeof nothing, 0) >= 0 || errno != ENOBUFS)
    return "a ring could still send a foreign frame";
  return nullptr;
}

ring_guard::Bounds bounds_of(const Request& request, const sockaddr_ll& bound) {
  ring_guard::Bounds bounds;
  memcpy(bounds.source, bound.sll_addr, sizeof bounds.source);
  bounds.ether_type = htons(pm::kEtherType);
  bounds.magic_version = pm::kFrameMagic | pm::kFrameVersion << 8;
  bounds.channel = static_cast<std::uint16_t>(request.channel);
  bounds.generation = ring_generation(request.attempt);
  bounds.key = request.key;
  bounds.rank = request.rank;
  return bounds;
}

// 0 or an errno.
int bound_ring(int fd, int table, const Request& request, Failure& failure) {
  sockaddr_ll bound{};
  socklen_t size = sizeof bound;
  const std::uint32_t mark = ring_guard::kMark;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail(failure, errno, "read the ring's address");
  }
  if (const int error = fix_binding(fd); error != 0) return fail(failure, error, "fix the binding");
  if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) != 0) {
    return fail(failure, errno, "mark the ring");
  }
  if (const char* hole = find_hole(fd, bound); hole != nullptr) {
    return fail(failure, EPERM, hole);
  }
  const auto bounds = bounds_of(request, bound);
  const int set = ring_guard::bpf_set_of_socket(table, fd, &bounds);
  return set == 0 ? 0 : fail(failure, -set, "set the ring's bounds");
}

}  // namespace

Rings::~Rings() {
  forget();
}

void Rings::forget() {
  for (int* fd : {&own_, &space_, &table_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

bool Rings::prepare(Failure& failure) {
  own_ = open_namespace();
  if (own_ < 0 || unshare(CLONE_NEWNET) != 0) {
    fail(failure, errno, "make the rings' network namespace");
    return false;
  }
  space_ = open_namespace();
  enter(own_);
  if (space_ < 0 || !run_guard(guard_, interface_, space_)) {
    fail(failure, EPERM, "scored-ring-guard failed: see the log");
    return false;
  }
  table_ = ring_guard::bpf_open(ring_guard::kTable);
  if (table_ < 0) fail(failure, -table_, "open the table of bounds");
  return table_ >= 0;
}

int Rings::open_inside(const Request& request, Failure& failure) const {
  const pm::EthernetPlace place{ring_guard::kRingInterface,
                                static_cast<std::uint16_t>(request.channel), request.rank,
                                request.key, ring_generation(request.attempt)};
  const int fd = pm::open_ethernet_socket(place);
  if (fd < 0) return fail(failure, -fd, "open a ring");
  if (bound_ring(fd, table_, request, failure) == 0) return fd;
  close(fd);
  return -1;
}

int Rings::open(const Request& request, Failure& failure) {
  const bool was_prepared = space_ >= 0;
  if (was_prepared || prepare(failure)) {
    enter(space_);
    const int fd = open_inside(request, failure);
    enter(own_);
    if (fd >= 0) return fd;
  }
  forget();
  // The interface may have been taken away and made again since.
  if (!was_prepared) return -1;
  failure = {};
  return open(request, failure);
}

}  // namespace score::launcher
