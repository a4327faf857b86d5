// What a host must have before it becomes a node. Pure: facts in, findings out.
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

// What the head says about itself and its cluster.
struct ClusterFacts {
  std::string node;                 // the name that this host is to have
  std::uint32_t payload_bytes = 0;  // largest frame payload of PM; 0: no network between nodes
  std::vector<NamedUser> users;
};

struct HostState {
  std::string name;
  bool has_unified_cgroups = false;             // cgroup2 is mounted on /sys/fs/cgroup
  std::vector<std::string> cgroup_controllers;  // that version 2 has
  Duration ahead_of_head{};                     // of this host's wall clock
  Duration clock_error{};                       // of that measurement
  std::string interface;                        // that leads to the head
  std::uint32_t mtu = 0;                        // of it
  std::vector<std::string> interfaces;          // all that are up, without loopback
  std::vector<std::pair<NamedUser, std::optional<std::uint32_t>>> users;  // the head's, uid here
};

struct Finding {
  bool is_fatal = false;  // the host is not made a node
  std::string text;       // what is wrong, and what to do about it
};

// In the order in which to mend them; empty: all is well.
std::vector<Finding> check_host(const HostState& host, const ClusterFacts& cluster);

}  // namespace score::scout
