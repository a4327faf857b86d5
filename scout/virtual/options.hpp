// Holds the options of a virtual cluster.
#pragma once

#include "base/limits.hpp"
#include "base/time.hpp"

#include <string>
#include <vector>

namespace score::scout {

struct VirtualOptions {
  std::uint32_t nodes = 4;
  std::uint32_t heads = 1;
  std::uint32_t cores = 1;  // per node, for the scheduler
  Duration slice = limits::kDefaultQuantum;
  std::uint32_t slots = limits::kMaxSlots;
  Duration node_timeout{0};       // 0: the default of scored.toml
  std::string memory = "1G";      // per node, for the scheduler
  std::string scratch = "1G";     // per node, for jobs' volumes
  std::string scratch_directory;  // absolute; empty: in the cluster's directory
  std::string placement = "matrix";
  bool switch_always = false;  // also between slices of the same jobs
  bool netns = false;          // one network namespace and veth per node
  bool keep = false;
  bool print_json = false;
  bool node_metrics = false;     // each node serves /metrics
  bool no_cgroup = false;        // as if this user may not create one
  std::uint32_t channels = 16;   // network channels per node
  std::uint32_t payload = 1424;  // largest payload of their frames
  std::string switch_mode = "clock";
  std::string device = "udp";            // between nodes: udp, ethernet[:MODE] or ofi[:PROVIDER]
  std::uint32_t links = 1;               // number of links of that device to each node
  std::string control = "pm";            // between the daemons: pm, tls
  std::string hooks;                     // file with [hooks] for all daemons; empty: none
  std::vector<std::string> node_config;  // NODES=FILE: lines for the configuration of these nodes
  std::vector<std::string> command;

  [[nodiscard]] bool is_ethernet() const { return device.starts_with("ethernet"); }
};

// Returns names node00 ... node63, with as many digits as the last name needs, at least two.
std::vector<std::string> node_names(std::uint32_t count);

// Returns true if there are more cores than processors; then a node's core is not a processor of
// its own.
bool shares_processors(const VirtualOptions& options);

}  // namespace score::scout
