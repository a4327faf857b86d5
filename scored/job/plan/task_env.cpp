#include "scored/job/plan/task_env.hpp"

#include "base/model/slurm_env.hpp"
#include "pmlib/network/broker.hpp"

#include <algorithm>

namespace score::shepherd {

namespace {

constexpr std::string_view kPmixNamespace = "PMIX_NAMESPACE";

std::string_view name_of_variable(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The ranks of this node, joined by commas.
std::string local_ranks(const Plan& plan) {
  std::string text;
  for (const std::uint32_t rank : plan.ranks)
    text += (text.empty() ? "" : ",") + fmt::to_string(rank);
  return text;
}

// Adds the variables with Slurm's names. Those that describe the whole job came with it, unless the
// head is of an earlier release; the plan of a script knows only its own node.
void add_slurm(std::vector<std::string>& out, const Plan& plan, std::uint32_t task) {
  const auto& spec = plan.spec;
  const bool is_script = !spec.script().empty();
  const auto set = [&out](std::string_view name, const auto& value) {
    const std::string start = fmt::format("SLURM_{}=", name);
    std::erase_if(out, [&](const auto& variable) { return variable.starts_with(start); });
    out.push_back(start + fmt::format("{}", value));
  };
  const auto add = [&](std::string_view name, const auto& value) {
    const std::string start = fmt::format("SLURM_{}=", name);
    const auto is_it = [&](const auto& variable) { return variable.starts_with(start); };
    if (std::ranges::none_of(out, is_it)) set(name, value);
  };
  SlurmJob job;
  job.job = spec.job();
  job.name = spec.job_name();
  job.nodes = spec.nodelist();
  job.tasks_on_node.assign(plan.prepare.tasks_on_node().begin(),
                           plan.prepare.tasks_on_node().end());
  job.cpus_per_task = spec.cpus_per_task();
  job.memory_per_node = Bytes(plan.prepare.memory_bytes());
  job.user = UserId(spec.user());
  job.restarts = plan.prepare.restarts();
  for (const std::string& variable : slurm_job_variables(job)) {
    const auto equals = variable.find('=');
    add(std::string_view(variable).substr(6, equals - 6), variable.substr(equals + 1));
  }
  add("SUBMIT_DIR", spec.directory());
  const auto cpus = static_cast<std::uint32_t>(plan.prepare.cores_size());
  set("CPUS_ON_NODE", cpus > 0 ? cpus : plan.local_tasks() * std::max(1U, spec.cpus_per_task()));
  out.push_back(fmt::format("SLURMD_NODENAME={}", plan.prepare.node_name()));
  set("PROCID", plan.rank_of(task));
  set("LOCALID", task);
  set("NODEID", plan.prepare.node_index());
  set("GTIDS", local_ranks(plan));
  if (is_script) return;
  // The tasks of a step count the step's nodes and tasks.
  for (const auto* name : {"NNODES", "STEP_NUM_NODES"}) set(name, plan.node_count());
  for (const auto* name : {"NODELIST", "STEP_NODELIST"}) set(name, spec.nodelist());
  for (const auto* name : {"NTASKS", "NPROCS", "STEP_NUM_TASKS"}) set(name, plan.size);
  for (const auto* name : {"TASKS_PER_NODE", "STEP_TASKS_PER_NODE"})
    set(name, slurm_counts(job.tasks_on_node));
  for (const auto* name : {"STEP_ID", "STEPID"}) set(name, spec.step().empty() ? "0" : spec.step());
  set("CPUS_PER_TASK", std::max(1U, spec.cpus_per_task()));
}

// If tasks can open only their own devices, drivers count just those devices, from 0.
void add_generic(std::vector<std::string>& out, const Plan& plan) {
  std::string all;
  for (const auto& share : plan.prepare.generic()) {
    const auto& kinds = plan.prepare.restricted();
    const bool is_restricted = std::ranges::find(kinds, share.name()) != kinds.end();
    std::string units;
    std::string seen;
    for (int i = 0; i < share.indices_size(); ++i) {
      units += fmt::format("{}{}", i > 0 ? "," : "", share.indices(i));
      seen += fmt::format("{}{}", i > 0 ? "," : "",
                          is_restricted ? static_cast<std::uint32_t>(i) : share.indices(i));
    }
    all += fmt::format("{}{}:{}", all.empty() ? "" : ";", share.name(), units);
    // tidy: allow wire, users give kinds their names, and this one has variables of its own
    if (share.name() != "gpu") continue;
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
      out.push_back(fmt::format("{}={}", name, seen));
    }
  }
  if (!all.empty()) out.push_back("SCORE_GRES=" + all);
}

void add_pmix(std::vector<std::string>& out, const Plan& plan, std::uint32_t rank) {
  for (const auto& variable : plan.prepare.pmix_env()) {
    if (plan.world() == 0 || name_of_variable(variable) != kPmixNamespace) out.push_back(variable);
  }
  if (plan.world() != 0) out.push_back(fmt::format("{}={}", kPmixNamespace, plan.key_space()));
  out.push_back(fmt::format("PMIX_RANK={}", rank));
}

// An Open MPI rank that polls for a message would keep the core from the rank that is to send it.
// MPICH has no switch for this that makes a difference (docs/lab/mpi-compatibility.md).
constexpr std::string_view kYield = "OMPI_MCA_mpi_yield_when_idle";
// Threads of OpenMP that spin at the end of a parallel region would keep the core from those that
// they wait for. Where a node's tasks have processors of their own, spinning is quicker.
constexpr std::string_view kOpenMpWaits = "OMP_WAIT_POLICY";
constexpr std::string_view kMpichPmi = "MPIR_CVAR_PMI_VERSION";

}  // namespace

std::vector<std::string> own_variables(const Plan& plan, std::uint32_t task) {
  std::vector<std::string> out;
  const auto add = [&out](std::string_view name, const auto& value) {
    out.push_back(fmt::format("{}={}", name, value));
  };
  const auto rank = plan.world_rank_of(task);
  const auto& program = plan.program_of(task);
  add("SCORE_JOBID", plan.spec.job());
  add("SCORE_JOB_ID", plan.spec.job());
  if (!plan.spec.step().empty()) add("SCORE_STEP_ID", plan.spec.step());
  out.insert(out.end(), plan.spec.job_env().begin(), plan.spec.job_env().end());
  if (plan.spec.script().empty()) {
    add("SCORE_RANK", plan.rank_of(task));
    add("SCORE_SIZE", plan.size);
    add("SCORE_NNODES", plan.node_count());
    if (!plan.spec.nodelist().empty()) add("SCORE_NODELIST", plan.spec.nodelist());
    add("SCORE_NODEID", plan.prepare.node_index());
    add("SCORE_LOCALID", task);
  }
  add("SCORE_NODENAME", plan.prepare.node_name());
  if (!plan.prepare.commands_socket().empty()) {
    add("SCORE_COMMANDS_SOCKET", plan.prepare.commands_socket());
  }
  add_generic(out, plan);
  out.insert(out.end(), plan.prepare.scratch_env().begin(), plan.prepare.scratch_env().end());
  add("SCORE_RESTART_COUNT", plan.prepare.restarts());
  add("SCORE_APPNUM", plan.apps[task]);
  add("PWD", plan.directory_of(program));
  if (plan.wants_pmi()) {
    add("PMI_FD", kTaskPmiFd);
    add("PMI_RANK", rank);
    add("PMI_SIZE", plan.size);
    if (plan.world() != 0) add("PMI_SPAWNED", 1);
  }
  if (plan.wants_pmix()) add_pmix(out, plan, rank);
  // MPICH 5 refuses to choose if it finds both.
  const bool has_both = plan.wants_pmi() && plan.wants_pmix();
  if (has_both && !find_variable(plan.spec, program, kMpichPmi)) add(kMpichPmi, 1);
  out.insert(out.end(), plan.prepare.net_env().begin(), plan.prepare.net_env().end());
  // If the submitting task had a network of its own, its descriptor must not be mistaken for the
  // network of this task.
  if (plan.wants_network())
    add(pm::kBrokerVariable, plan.wants_pmi() ? kTaskPmiFd + 1 : kTaskPmiFd);
  if (plan.spec.slurm_env()) add_slurm(out, plan, task);
  if (plan.spec.cpus_per_task() > 1 && !find_variable(plan.spec, program, "OMP_NUM_THREADS")) {
    add("OMP_NUM_THREADS", plan.spec.cpus_per_task());
  }
  const bool may_share = plan.shares_cores() || plan.prepare.cpus().empty();
  if (plan.spec.cpus_per_task() > 1 && may_share &&
      !find_variable(plan.spec, program, kOpenMpWaits)) {
    add(kOpenMpWaits, "passive");
  }
  const auto yields = [](const std::string& other) { return name_of_variable(other) == kYield; };
  const bool is_set = find_variable(plan.spec, program, kYield) || std::ranges::any_of(out, yields);
  if (plan.shares_cores() && !is_set) add(kYield, 1);
  return out;
}

bool is_replaced(std::string_view variable, const std::vector<std::string>& own) {
  for (const auto* inherited : {"PM_CONTEXT_FD=", "PM_LOCAL_FDS=", "PM_DEVICE_FD="}) {
    if (variable.starts_with(inherited)) return true;
  }
  // These variables belong to the job or shell from which this job was submitted. Variables that
  // tune the user's libpmix are kept.
  const bool is_pmix = variable.starts_with("PMIX_") && !variable.starts_with("PMIX_MCA_");
  if (variable.starts_with("PMI_") || is_pmix) return true;
  const auto name = name_of_variable(variable);
  if (name == pm::kBrokerVariable) return true;
  return std::ranges::any_of(own,
                             [&](const auto& other) { return name_of_variable(other) == name; });
}

}  // namespace score::shepherd
