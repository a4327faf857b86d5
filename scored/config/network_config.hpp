#pragma once
// The table [network] of the configuration, which head and nodes share: what the jobs' PM networks
// are made of. See scored.toml(5).

#include "base/config/config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score {

enum class NetworkDevice : std::uint8_t { Udp, Ethernet, Ofi };

enum class SwitchMode : std::uint8_t {
  Clock,    // every node switches at its own time, with a guard for the clocks' error
  Barrier,  // a job goes on when all its nodes have stopped the one before and are ready
};

// How Ethernet frames pass between a task and the kernel.
enum class EthernetMode : std::uint8_t {
  Ring,  // received from a mapped packet ring
  Xdp,   // AF_XDP; where a node cannot do that, a packet ring
};

// A way from node to node.
struct NetworkLink {
  NetworkDevice device = NetworkDevice::Udp;
  std::string interface;     // empty: the one towards the head
  std::string provider;      // of libfabric, for Ofi
  std::uint32_t weight = 1;  // the part of the frames that it gets, beside the others
};

struct NetworkConfig {
  std::vector<NetworkLink> links = {NetworkLink{}};  // between nodes; empty: none
  bool shmem = true;                                 // between tasks of one node
  std::uint32_t channels = 16;                       // of each node; head only
  bool tags = false;                                 // pm_auth = "tag"
  std::uint32_t payload = 1424;                      // bytes in a frame at most; head only

  EthernetMode mode = EthernetMode::Ring;

  SwitchMode switch_mode = SwitchMode::Clock;

  [[nodiscard]] bool is_off() const { return links.empty() && !shmem; }
};

// Reads [network]; problems stay with the file.
[[nodiscard]] NetworkConfig read_network_config(ConfigSection& root);

}  // namespace score
