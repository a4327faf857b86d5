#pragma once
// The table [network] of the configuration describes the jobs' PM networks; the head and the nodes
// share it. See scored.toml(5).

#include "base/config/config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score {

enum class NetworkDevice : std::uint8_t { Udp, Ethernet, Ofi };

enum class SwitchMode : std::uint8_t {
  Clock,    // every node switches by its own clock, with a guard for the clocks' error
  Barrier,  // a job continues when all its nodes have stopped the previous job and are ready
};

// A link is one connection between nodes, over one device.
struct NetworkLink {
  NetworkDevice device = NetworkDevice::Udp;
  std::string interface;     // empty: the interface towards the head
  std::string provider;      // libfabric provider, for Ofi
  std::uint32_t weight = 1;  // share of the frames, relative to the other links
};

struct NetworkConfig {
  std::vector<NetworkLink> links = {NetworkLink{}};  // between nodes; empty: none
  bool shmem = true;                                 // shared memory between tasks of one node
  std::uint32_t channels = 16;                       // per node; head only
  bool tags = false;                                 // pm_auth = "tag"
  std::uint32_t payload = 1424;                      // maximum bytes per frame; head only

  SwitchMode switch_mode = SwitchMode::Clock;

  [[nodiscard]] bool is_off() const { return links.empty() && !shmem; }
};

// Reads [network]; problems become errors of the file.
[[nodiscard]] NetworkConfig read_network_config(ConfigSection& root);

}  // namespace score
