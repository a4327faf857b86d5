#include "scored/privileged/rings/ring_bounds.hpp"

#include "pmlib/wire/ebpf.hpp"
#include "pmlib/wire/frame.hpp"
#include "scored/privileged/ring_guard/bounds.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

namespace score::rings {

namespace {

// Joins a fanout group, because the kernel does not bind sockets of such a group again.
int fix_binding(int fd) {
  const std::uint32_t kind = PACKET_FANOUT_CPU | PACKET_FANOUT_FLAG_UNIQUEID;
  const std::uint32_t group = kind << 16;
  return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof group) == 0 ? 0 : errno;
}

bool is_refused(int fd, int option, const void* value, socklen_t size) {
  return setsockopt(fd, SOL_PACKET, option, value, size) != 0 && errno == EPERM;
}

// Tries what the ring's holder could try. Without bounds the ring must not send anything yet.
const char* find_hole(int fd, const sockaddr_ll& bound) {
  sockaddr_ll any = bound;
  any.sll_protocol = htons(ETH_P_ALL);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) {
    return "a ring could still bind again";
  }
  const packet_mreq promiscuous{.mr_ifindex = bound.sll_ifindex,
                                .mr_type = PACKET_MR_PROMISC,
                                .mr_alen = 0,
                                .mr_address = {}};
  if (!is_refused(fd, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)) {
    return "a ring could still change an option";
  }
  const char nothing[ETH_ZLEN] = {};
  if (send(fd, nothing, sizeof nothing, 0) >= 0 || errno != ENOBUFS) {
    return "a ring could still send a foreign frame";
  }
  return nullptr;
}

ring_guard::Bounds bounds_of(const RingRequest& request, const std::uint8_t* source) {
  ring_guard::Bounds bounds;
  memcpy(bounds.source, source, sizeof bounds.source);
  bounds.ether_type = htons(pm::kEtherType);
  bounds.magic_version = pm::kFrameMagic | pm::kFrameVersion << 8;
  bounds.channel = static_cast<std::uint16_t>(request.channel);
  bounds.generation = ring_generation(request.attempt);
  bounds.key = request.key;
  bounds.rank = request.rank;
  return bounds;
}

int mark(int fd, RingFailure& failure) {
  const std::uint32_t mark = ring_guard::kMark;
  if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0) return 0;
  return fail(failure, errno, "mark the ring");
}

int set_bounds(int table, int fd, const ring_guard::Bounds& bounds, RingFailure& failure) {
  const int set = pm::bpf_set(table, &fd, &bounds, BPF_NOEXIST);
  return set == 0 ? 0 : fail(failure, -set, "set the ring's bounds");
}

}  // namespace

int fail(RingFailure& failure, int error, const char* step) {
  failure.error = error;
  snprintf(failure.step, sizeof failure.step, "%s", step);
  return -1;
}

int bound_packet_ring(int fd, int table, const RingRequest& request, RingFailure& failure) {
  sockaddr_ll bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail(failure, errno, "read the ring's address");
  }
  if (const int error = fix_binding(fd); error != 0) return fail(failure, error, "fix the binding");
  if (const int failed = mark(fd, failure); failed != 0) return failed;
  if (const char* hole = find_hole(fd, bound); hole != nullptr) return fail(failure, EPERM, hole);
  return set_bounds(table, fd, bounds_of(request, bound.sll_addr), failure);
}

}  // namespace score::rings
