#include "scout/slurm/cluster_list.hpp"

#include "scout/session/words.hpp"
#include "scout/slurm/job_list.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace score::scout::slurm {

namespace {

struct StateName {
  std::string_view full;
  std::string_view compact;
};

// Slurm has no word for a node that is suspected to have failed; "unknown" is the nearest.
StateName name_of(const NodeRow& node) {
  const auto& status = node.status;
  if (status.state() == wire::NodeStatus::DOWN) return {"down", "down"};
  if (status.state() != wire::NodeStatus::UP) return {"unknown", "unk"};
  if (status.drained()) {
    return node.used_cores > 0 ? StateName{"draining", "drng"} : StateName{"drained", "drain"};
  }
  if (node.used_cores == 0) {
    return status.reservation().empty() ? StateName{"idle", "idle"} : StateName{"reserved", "resv"};
  }
  return node.used_cores < status.cores() ? StateName{"mixed", "mix"}
                                          : StateName{"allocated", "alloc"};
}

}  // namespace

Result<ClusterRows> ask_cluster(HeadLink& head) {
  auto info = head.ask<wire::Info>(wire::GetInfo());
  if (!info) return info.error();
  auto list = head.ask<wire::NodeList>(wire::ListNodes());
  if (!list) return list.error();
  const auto jobs = queued_jobs(head, false);
  if (!jobs) return jobs.error();
  std::map<std::string, std::uint32_t> used;
  for (const auto& job : *jobs) {
    const int nodes = std::min(job.nodes_size(), job.tasks_on_node_size());
    for (int i = 0; i < nodes; ++i) {
      used[job.nodes(i)] += job.tasks_on_node(i) * std::max(1U, job.cpus_per_task());
    }
  }
  ClusterRows rows;
  rows.info = std::move(*info);
  for (auto& node : *list->mutable_nodes()) {
    NodeRow row{std::move(node), 0};
    row.used_cores = std::min(used[row.status.name()], row.status.cores());
    rows.nodes.push_back(std::move(row));
  }
  return rows;
}

std::string node_state(const NodeRow& node) {
  return std::string(name_of(node).full);
}

std::string short_state(const NodeRow& node) {
  return std::string(name_of(node).compact);
}

std::vector<std::string> partitions_of(const wire::Info& info) {
  std::vector<std::string> partitions(info.queues().begin(), info.queues().end());
  std::ranges::sort(partitions);
  const auto normal = std::ranges::find(partitions, kDefaultPartition);
  if (normal != partitions.end()) std::rotate(partitions.begin(), normal, normal + 1);
  return partitions;
}

}  // namespace score::scout::slurm
