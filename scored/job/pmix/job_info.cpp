// This module is tested by pmix_flow_test.cpp.
#include "scored/job/pmix/job_info.hpp"

#include "base/errc.hpp"

#include <pmix_server.h>

#include <algorithm>
#include <cstdlib>

namespace score::pmix {

namespace {

using shepherd::Plan;

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) (text += text.empty() ? "" : ",") += std::to_string(rank);
  return text;
}

// PMIx packs a list into its own text format ("pmix[node[2:0-63]]").
template <class Generate>
base::Result<std::string> packed(Generate generate, const std::string& list) {
  char* text = nullptr;
  if (generate(list.c_str(), &text) != PMIX_SUCCESS || text == nullptr) {
    return base::fail(base::Errc::Malformed, "PMIx cannot pack {}", list);
  }
  std::string out(text);
  std::free(text);  // NOLINT: PMIx returns malloc'ed memory
  return out;
}

std::string node_list(const Plan& plan) {
  std::string nodes;
  const auto members = plan.members_on_node();
  for (std::size_t node = 0; node < members.size(); ++node) {
    if (members[node] == 0) continue;
    const bool is_named = node < plan.node_names.size();
    nodes += nodes.empty() ? "" : ",";
    nodes += is_named ? plan.node_names[node] : "node" + std::to_string(node);
  }
  return nodes;
}

std::string rank_list(const Plan& plan) {
  std::vector<std::vector<std::uint32_t>> of_nodes(plan.node_count());
  std::uint32_t rank = 0;
  for (const std::uint32_t node : plan.nodes_of_ranks()) of_nodes[node].push_back(rank++);
  std::string text;
  for (const auto& ranks : of_nodes) {
    if (!ranks.empty()) (text += text.empty() ? "" : ";") += ranks_text(ranks);
  }
  return text;
}

void add_sizes(InfoList& out, const Plan& plan) {
  const auto nodes =
      std::ranges::count_if(plan.members_on_node(), [](std::uint32_t tasks) { return tasks > 0; });
  out.add_u32(PMIX_JOB_SIZE, plan.size);
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_MAX_PROCS}) out.add_u32(key, plan.total);
  out.add_u32(PMIX_NUM_NODES, static_cast<std::uint32_t>(nodes));
  const auto members = static_cast<std::uint32_t>(plan.members.size());
  out.add_u32(PMIX_LOCAL_SIZE, members);
  out.add_u32(PMIX_NODE_SIZE, members);
  out.add_u32(PMIX_JOB_NUM_APPS, static_cast<std::uint32_t>(plan.spec.programs_size()));
  if (plan.world() != 0) out.add(PMIX_SPAWNED, true);
  if (members == 0) return;
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t task : plan.members) ranks.push_back(plan.world_rank_of(task));
  out.add_rank(PMIX_LOCALLDR, ranks.front());
  out.add(PMIX_LOCAL_PEERS, ranks_text(ranks));
}

void add_apps(InfoList& out, const Plan& plan) {
  const auto firsts = plan.first_ranks();
  for (std::uint32_t number = 0; number + 1 < firsts.size(); ++number) {
    InfoList app;
    app.add_u32(PMIX_APPNUM, number);
    app.add_u32(PMIX_APP_SIZE, firsts[number + 1] - firsts[number]);
    app.add_rank(PMIX_APPLDR, firsts[number]);
    out.add_list(PMIX_APP_INFO_ARRAY, app);
  }
}

// Returns for each node, [node index], its number among the nodes that have tasks. The numbers are
// the same in all worlds of the job.
std::vector<std::uint32_t> node_numbers(const Plan& plan) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t next = 0;
  for (const std::uint32_t tasks : plan.prepare.tasks_on_node()) {
    numbers.push_back(next);
    if (tasks > 0) ++next;
  }
  return numbers;
}

void add_ranks(InfoList& out, const Plan& plan) {
  const auto numbers = node_numbers(plan);
  std::vector<std::uint16_t> locals(plan.node_count(), 0);
  const auto firsts = plan.first_ranks();
  std::uint32_t app = 0;
  pmix_rank_t rank = 0;
  for (const std::uint32_t node : plan.nodes_of_ranks()) {
    const std::uint16_t local = locals[node]++;
    InfoList proc;
    proc.add_rank(PMIX_RANK, rank);
    while (rank >= firsts[app + 1]) ++app;
    proc.add_u32(PMIX_APPNUM, app);
    proc.add_rank(PMIX_APP_RANK, rank - firsts[app]);
    proc.add_rank(PMIX_GLOBAL_RANK, rank);
    proc.add_u16(PMIX_LOCAL_RANK, local);
    proc.add_u16(PMIX_NODE_RANK, local);
    proc.add_u32(PMIX_NODEID, numbers[node]);
    out.add_list(PMIX_PROC_DATA, proc);
    ++rank;
  }
}

}  // namespace

base::Status add_job_info(InfoList& out, const Plan& plan, const std::string& directory) {
  auto nodes = packed(PMIx_generate_regex, node_list(plan));
  if (!nodes) return nodes.error();
  auto ranks = packed(PMIx_generate_ppn, rank_list(plan));
  if (!ranks) return ranks.error();
  out.add(PMIX_JOBID, plan.key_space());
  add_sizes(out, plan);
  out.add(PMIX_NODE_MAP, *nodes);
  out.add(PMIX_PROC_MAP, *ranks);
  out.add(PMIX_TMPDIR, directory);
  out.add(PMIX_NSDIR, directory);
  out.add(PMIX_TDIR_RMCLEAN, true);
  add_apps(out, plan);
  add_ranks(out, plan);
  return {};
}

}  // namespace score::pmix
