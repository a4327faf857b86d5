// A task gets its context from its launcher over an inherited Unix socket of packets, when it first
// needs one. A job that never asks costs only one descriptor per task.
//
// The task sends one BrokerRequest. The answer is one or more BrokerReply, each with at most
// kBrokerFds descriptors: the contexts of the node's ranks in their order, then the packet devices'
// sockets if there are any. Both sides run as the same user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace score::pm {

constexpr std::uint32_t kBrokerMagic = 0x424d5031;  // "1PMB"
constexpr std::size_t kBrokerFds = 32;              // most descriptors of one packet
constexpr const char* kBrokerVariable = "PM_NETWORK_FD";

struct BrokerRequest {
  std::uint32_t magic = kBrokerMagic;
  std::uint32_t reserved = 0;
};

struct BrokerReply {
  std::uint32_t magic = kBrokerMagic;
  std::int32_t error = 0;      // errno: there is no network, and no further packet
  std::uint32_t contexts = 0;  // number of contexts of this node
  std::uint32_t own = 0;       // index of the task's context
  std::uint32_t devices = 0;   // sockets, one per link; 0 or 1 for libraries before links
  std::uint32_t reserved = 0;
};

static_assert(sizeof(BrokerRequest) == 8 && sizeof(BrokerReply) == 24);

// A BrokeredContext owns the received descriptors.
struct BrokeredContext {
  BrokeredContext() = default;
  BrokeredContext(const BrokeredContext&) = delete;
  BrokeredContext& operator=(const BrokeredContext&) = delete;
  ~BrokeredContext();

  std::vector<int> contexts;  // [local rank]
  std::uint32_t own = 0;
  std::vector<int> devices;  // [link]; a caller that takes ownership empties it
};

// Asks the broker and waits as long as the other ranks' nodes need. Returns 0, the broker's errno,
// EPROTO if the answer is invalid, or ENETDOWN if the broker is gone. Only one process may ask at a
// time.
int ask_broker(int socket, BrokeredContext& got);

}  // namespace score::pm
