// Checks what a host must have before it becomes a node. Pure: facts in, findings out.
#pragma once

#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace score::scout {

struct NamedUser {
  std::string name;
  std::uint32_t uid = 0;
};

// Holds facts that the head reports about itself and its cluster.
struct ClusterFacts {
  std::string node;                 // the name that this host will have
  std::uint32_t payload_bytes = 0;  // largest frame payload of PM; 0: no network between nodes
  std::vector<NamedUser> users;
};

struct HostState {
  std::string name;
  bool has_unified_cgroups = false;             // cgroup2 is mounted on /sys/fs/cgroup
  std::vector<std::string> cgroup_controllers;  // available in version 2
  Duration ahead_of_head{};                     // difference of this host's wall clock
  Duration clock_error{};                       // of that measurement
  std::string interface;                        // the one that leads to the head
  std::uint32_t mtu = 0;                        // of that interface
  std::vector<std::string> interfaces;          // all that are up, without loopback
  std::vector<std::pair<NamedUser, std::optional<std::uint32_t>>>
      users;  // the head's users, with their uid here
};

struct HostFinding {
  bool is_fatal = false;  // the host cannot become a node
  std::string text;       // the problem and its remedy
};

// Returns the findings in the order in which to repair them; empty if there are none.
std::vector<HostFinding> check_host(const HostState& host, const ClusterFacts& cluster);

}  // namespace score::scout
