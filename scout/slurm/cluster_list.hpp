// Asks the head for nodes and what they are used for, as sinfo and scontrol show them.
#pragma once

#include "scout/session/head_link.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::scout::slurm {

struct NodeRow {
  wire::NodeStatus status;
  std::uint32_t used_cores = 0;  // by jobs that are placed there; at most all of them
};

struct ClusterRows {
  wire::Info info;
  std::vector<NodeRow> nodes;
};

Result<ClusterRows> ask_cluster(HeadLink& head);

// Returns the state as sinfo prints it: "idle", "mixed", "drained", "down".
std::string node_state(const NodeRow& node);
// Returns the short form: "mix", "drain".
std::string short_state(const NodeRow& node);

// Every node takes jobs of every queue, and a queue is shown as a partition. "normal" is the
// default.
std::vector<std::string> partitions_of(const wire::Info& info);
inline constexpr std::string_view kDefaultPartition = "normal";

}  // namespace score::scout::slurm
