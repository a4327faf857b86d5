#include "base/model/slurm_env.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace score::inline base {

std::vector<std::string> slurm_job_variables(const SlurmJob& job) {
  std::vector<std::string> out;
  const auto add = [&out](std::string_view name, const auto& value) {
    out.push_back(fmt::format("SLURM_{}={}", name, value));
  };
  const auto add_known = [&add](std::string_view name, const std::string& value) {
    if (!value.empty()) add(name, value);
  };
  for (const auto* name : {"JOB_ID", "JOBID"}) add(name, job.job);
  add("JOB_NAME", job.name);
  for (const auto* name : {"NNODES", "JOB_NUM_NODES"}) add(name, job.tasks_on_node.size());
  for (const auto* name : {"NODELIST", "JOB_NODELIST"}) add(name, job.nodes);
  const auto tasks =
      std::accumulate(job.tasks_on_node.begin(), job.tasks_on_node.end(), std::uint64_t{0});
  for (const auto* name : {"NTASKS", "NPROCS"}) add(name, tasks);
  add("TASKS_PER_NODE", slurm_counts(job.tasks_on_node));
  const std::uint32_t cpus = std::max(1U, job.cpus_per_task);
  add("CPUS_PER_TASK", cpus);
  auto cores = job.cores_on_node;
  if (cores.empty()) {
    for (const std::uint32_t on_node : job.tasks_on_node) cores.push_back(on_node * cpus);
  }
  add("JOB_CPUS_PER_NODE", slurm_counts(cores));
  if (job.memory_per_node > Bytes(0)) add("MEM_PER_NODE", job.memory_per_node.value() >> 20U);
  add_known("JOB_PARTITION", job.partition);
  add_known("CLUSTER_NAME", job.cluster);
  add_known("JOB_ACCOUNT", job.account);
  add_known("JOB_USER", job.user_name);
  add("JOB_UID", job.user.value());
  if (job.restarts > 0) add("RESTART_COUNT", job.restarts);
  return out;
}

std::string slurm_counts(std::span<const std::uint32_t> counts) {
  std::string text;
  for (std::size_t node = 0; node < counts.size();) {
    std::size_t end = node + 1;
    while (end < counts.size() && counts[end] == counts[node]) ++end;
    if (node > 0) text += ',';
    text += std::to_string(counts[node]);
    if (end - node > 1) text += fmt::format("(x{})", end - node);
    node = end;
  }
  return text;
}

}  // namespace score::inline base
