#include "scored/head/clients/pools.hpp"

#include "base/text/hostlist.hpp"
#include "scored/head/config/partitions.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace score::head {
namespace {

void add_limits(const PartitionRule& rule, wire::PartitionState& out) {
  const auto add = [&out](std::string_view name, const auto& value) {
    out.add_limits(fmt::format("{} {}", name, value));
  };
  if (rule.max_jobs > 0) add("jobs", rule.max_jobs);
  if (rule.limits.max_running_jobs > 0) add("running_jobs", rule.limits.max_running_jobs);
  if (rule.limits.max_nodes > 0) add("nodes", rule.limits.max_nodes);
  if (rule.limits.max_memory > Bytes(0)) add("memory", rule.limits.max_memory);
}

void add_partition(const PartitionRule& rule, const PartitionCount& count, wire::Info& info) {
  wire::PartitionState& out = *info.add_partitions();
  out.set_name(rule.name);
  out.set_is_default(rule.is_default);
  out.set_nodes(compress_hostlist(rule.nodes));
  out.set_nodes_known(static_cast<std::uint32_t>(rule.nodes.size()));
  out.set_nodes_up(count.nodes_up);
  out.set_order(rule.order);
  out.set_max_time_ns(rule.max_time.count());
  out.set_no_fill(!rule.fill);
  for (const std::string& user : rule.users) out.add_users(user);
  for (const std::string& account : rule.accounts) out.add_accounts(account);
  add_limits(rule, out);
  out.set_jobs_running(count.jobs_running);
  out.set_jobs_waiting(count.jobs_waiting);
}

// Counts the jobs by name: first those that have a place, second those that wait.
using JobCounts = std::map<std::string, std::pair<std::uint32_t, std::uint32_t>, std::less<>>;

JobCounts jobs_by_partition(const HeadContext& head) {
  JobCounts counts;
  for (const auto& [id, job] : head.jobs.all()) {
    if (job.ended || job.info.partition.empty()) continue;
    auto& [running, waiting] = counts[job.info.partition.str()];
    ++(job.progress.state == JobState::Pending ? waiting : running);
  }
  return counts;
}

std::uint32_t nodes_up(const HeadContext& head, const PartitionRule& rule) {
  std::uint32_t up = 0;
  for (const std::string& name : rule.nodes) {
    const auto id = head.links.find(name);
    if (!id) continue;
    const auto view = head.runner.cluster().node(*id);
    up += view && view->state == gang::NodeState::Up && !view->drained ? 1 : 0;
  }
  return up;
}

}  // namespace

Pools count_pools(const HeadContext& head) {
  Pools out;
  const auto waiting = head.runner.cluster().waiting_for_licenses();
  for (const auto& [name, count] : head.runner.cluster().licenses().all()) {
    const auto jobs = waiting.find(name);
    out.licenses.push_back({name, count.total, static_cast<std::uint32_t>(count.used),
                            jobs == waiting.end() ? 0 : jobs->second});
  }
  const JobCounts jobs = jobs_by_partition(head);
  for (const PartitionRule& rule : head.config.partitions.all) {
    PartitionCount count{rule.name, nodes_up(head, rule)};
    if (const auto found = jobs.find(rule.name); found != jobs.end()) {
      std::tie(count.jobs_running, count.jobs_waiting) = found->second;
    }
    out.partitions.push_back(std::move(count));
  }
  return out;
}

void add_pools(const HeadContext& head, wire::Info& info) {
  const Pools pools = count_pools(head);
  for (std::size_t i = 0; i < pools.partitions.size(); ++i) {
    add_partition(head.config.partitions.all[i], pools.partitions[i], info);
  }
  for (const LicenseCount& count : pools.licenses) {
    wire::LicenseState& out = *info.add_licenses();
    out.set_name(count.name);
    out.set_total(count.total);
    out.set_used(count.used);
    out.set_jobs_waiting(count.jobs_waiting);
  }
}

}  // namespace score::head
