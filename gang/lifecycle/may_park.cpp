// This file is tested by parking_test.cpp.
#include "gang/lifecycle/may_park.hpp"

#include <algorithm>

namespace score::gang {

std::string why_never_parked(const ClusterConfig& config, const base::ResourceRequest& request) {
  const auto is_in = [](const auto& list, const auto& what) {
    return std::ranges::find(list, what) != list.end();
  };
  if (config.memory_share == base::MemoryShare::Never) return "share = \"never\"";
  if (request.no_park) return "--no-park";
  if (is_in(config.unparked_queues, request.queue)) return "jobs of its queue are not parked";
  if (is_in(config.unparked_partitions, request.partition)) {
    return "jobs of its partition are not parked";
  }
  return {};
}

std::string why_not_parked(const Tables& tables, const Job& job) {
  if (std::string why = why_never_parked(tables.config, job.request); !why.empty()) return why;
  if (!job.has_row() || !job.is_managed()) return "it is not switched";
  if (!job.steps->empty()) return "it has steps";
  if (job.members->in(Member::Started).size() != job.cells.nodes.size()) return "it is incomplete";
  for (const NodeIndex node : job.cells.nodes) {
    if (tables.nodes[node].info.swap > base::Bytes{0}) continue;
    return fmt::format("{} has no swap for jobs", tables.nodes.name(node));
  }
  return job.parked->refused;
}

}  // namespace score::gang
