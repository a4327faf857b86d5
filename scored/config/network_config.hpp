#pragma once
// The table [network] of the configuration, which head and nodes share: what the jobs' PM networks
// are made of. See scored.toml(5).

#include "base/config/config.hpp"

#include <cstdint>
#include <string>

namespace score {

enum class NetworkDevice : std::uint8_t { None, Udp, Ethernet };

enum class SwitchMode : std::uint8_t {
  Clock,    // every node switches at its own time, with a guard for the clocks' error
  Barrier,  // a job goes on when all its nodes have stopped the one before and are ready
};

struct NetworkConfig {
  NetworkDevice device = NetworkDevice::Udp;  // between nodes
  bool shmem = true;                          // between tasks of one node
  std::uint32_t channels = 16;                // of each node; head only
  std::string interface;                      // empty: the one towards the head
  bool tags = false;                          // pm_auth = "tag"
  std::uint32_t payload = 1424;               // bytes in a frame at most; head only

  SwitchMode switch_mode = SwitchMode::Clock;

  [[nodiscard]] bool is_off() const { return device == NetworkDevice::None && !shmem; }
};

// Reads [network]; problems stay with the file.
[[nodiscard]] NetworkConfig read_network_config(ConfigSection& root);

}  // namespace score
