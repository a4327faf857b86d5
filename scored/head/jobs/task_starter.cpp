#include "scored/head/jobs/task_starter.hpp"

#include "base/exit_codes.hpp"
#include "base/model/slurm_env.hpp"
#include "base/os/log.hpp"
#include "base/text/hostlist.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/jobs/arrays.hpp"

#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace score::head {
namespace {

std::string queue_name(Queue queue) {
  constexpr std::array<std::string_view, 4> kNames = {"exclusive", "high", "normal", "urgent"};
  return std::string(kNames.at(static_cast<std::size_t>(queue)));
}

}  // namespace

void TaskStarter::send(NodeId node, HeadToNode&& message) {
  if (auto* wanted = std::get_if<PrepareTasks>(&message)) return prepare(node, std::move(*wanted));
  if (const auto* kill = std::get_if<KillTasks>(&message)) stop_waiting_for_output(kill->attempt);
  const bool waits =
      std::holds_alternative<StartTasks>(message) || std::holds_alternative<ForgetTasks>(message);
  if (!waits) return send_now(node, message);
  held_.push_back({node, std::move(message)});
}

void TaskStarter::send_now(NodeId node, const HeadToNode& message) {
  const proto::OutFrame frame = proto::encode(message);
  head_.links.send(node, frame.type, frame.payload);
}

void TaskStarter::prepare(NodeId node, PrepareTasks&& message) {
  const AttemptId attempt = message.placed.attempt;
  Job* job = head_.jobs.find(job_of(attempt));
  if (job == nullptr) return;
  const auto view = head_.runner.view(job->info.id);
  if (!view) return;
  auto spec = spec_for(attempt, *job, *view);
  if (!spec) {
    log_error("Cannot launch job", kv("job", job->info.id), kv("err", spec.error()));
    Refused refused;
    refused.attempt = attempt;
    refused.exit_code = kExitError;
    refused.reason = "the head cannot read the job: " + spec.error().message();
    return head_.runner.perform(
        head_.runner.cluster().node_says(node, refused, head_.runner.now()));
  }
  auto& cores = job->progress.placement.cores;
  if (message.placed.node_index < cores.size()) {
    cores[message.placed.node_index] = message.placed.cores;
  }
  head_.runner.touch(job->info.id);
  message.spec = *spec;
  send_proven(node, std::move(message));
  secrets_.send(node, attempt);
}

// The proof is no part of the placement, so it is added to the encoded message: protobuf merges
// messages that follow each other.
void TaskStarter::send_proven(NodeId node, PrepareTasks&& message) {
  wire::PrepareTasks proof;
  proof.set_job_proof(proof_);
  proto::OutFrame frame = proto::encode(HeadToNode(std::move(message)));
  proof.AppendToString(&frame.payload);
  head_.links.send(node, frame.type, frame.payload);
}

// The script is alone on its node, and learns of the other nodes from variables.
void TaskStarter::describe_allocation(const Job& job, const gang::JobView& view,
                                      wire::LaunchSpec& spec) {
  const std::vector<std::string>& nodes = job.progress.placement.nodes;
  spec.set_nodelist(nodes.front());
  std::uint32_t tasks = 0;
  for (const std::uint32_t on_node : view.tasks_on_node) tasks += on_node;
  const auto add = [&spec](std::string_view name, const auto& value) {
    spec.add_job_env(fmt::format("{}={}", name, value));
  };
  spec.clear_job_env();
  add("SCORE_ALLOCATION", job.info.id);
  add("SCORE_JOB_NAME", job.info.name);
  add("SCORE_NODELIST", compress_hostlist(nodes));
  add("SCORE_NNODES", nodes.size());
  add("SCORE_NTASKS", tasks);
  add("SCORE_TASKS_PER_NODE", fmt::format("{}", fmt::join(view.tasks_on_node, ",")));
  add("SCORE_CPUS_PER_TASK", view.request.cpus_per_task);
}

// Adds the variables with Slurm's names that describe the job, or the job around a step.
void TaskStarter::describe_for_slurm(const Job& job, const gang::JobView& view,
                                     wire::LaunchSpec& spec) {
  const bool is_step = job.info.step_of != JobId(0);
  const Job* whole = is_step ? head_.jobs.find(job.info.step_of) : &job;
  const auto around = is_step ? head_.runner.view(job.info.step_of) : Result<gang::JobView>(view);
  if (whole == nullptr || !around) return;
  SlurmJob slurm;
  slurm.job = whole->info.id.value();
  slurm.name = whole->info.name;
  slurm.nodes = compress_in_order(whole->progress.placement.nodes);
  slurm.tasks_on_node = around->tasks_on_node;
  for (const auto& cores : around->cores) {
    slurm.cores_on_node.push_back(static_cast<std::uint32_t>(cores.size()));
  }
  slurm.cpus_per_task = around->request.cpus_per_task;
  slurm.memory_per_node = around->request.memory_per_node;
  slurm.partition = whole->info.partition.str();
  if (slurm.partition.empty()) slurm.partition = queue_name(around->request.queue);
  slurm.cluster = head_.config.cluster;
  slurm.account = whole->info.account.str();
  slurm.user = whole->info.user;
  slurm.user_name = head_.users.name(whole->info.user, head_.runner.now());
  slurm.restarts = around->restarts;
  for (auto& variable : slurm_job_variables(slurm)) spec.add_job_env(std::move(variable));
}

// The specification is encoded for the first node of an attempt and kept for the other nodes, which
// follow immediately.
Result<std::string> TaskStarter::spec_for(AttemptId attempt, Job& job, const gang::JobView& view) {
  if (spec_of_ == attempt) return spec_;
  auto stored = head_.reader.spec(job.info.is_task() ? job.info.array : job.info.id);
  if (!stored) return stored.error();
  wire::LaunchSpec spec;
  if (!spec.ParseFromString(*stored))
    return fail(Errc::Malformed, "cannot parse the specification");
  // These may have been changed since.
  spec.set_job_name(job.info.name);
  if (view.request.cpus_per_task != 0) spec.set_cpus_per_task(view.request.cpus_per_task);
  // A step inside a task of an array has the numbers of that task.
  const Job* task = job.info.step_of == JobId(0) ? &job : head_.jobs.find(job.info.step_of);
  if (task != nullptr && task->info.is_task()) fill_array_task(task->info, spec);
  job.nodes = view.nodes;
  Placement& placement = job.progress.placement;
  placement = {};
  placement.attempt = attempt;
  placement.tasks_on_node = view.tasks_on_node;
  placement.cores = view.cores;
  placement.units = view.units;
  for (const NodeId node : view.nodes) placement.nodes.push_back(head_.links.name(node));
  spec.set_nodelist(compress_in_order(placement.nodes));
  if (job.info.allocation) {
    describe_allocation(job, view, spec);
    // An allocation with a volume has something on each of its nodes.
    const bool has_all = view.request.scratch > Bytes(0);
    std::vector<NodeId> nodes(view.nodes.begin(),
                              has_all ? view.nodes.end() : view.nodes.begin() + 1);
    std::vector<std::uint32_t> tasks(nodes.size(), 0);
    tasks.front() = 1;
    streams_.place(job.info.id, attempt, std::move(nodes), std::move(tasks));
  } else {
    streams_.place(job.info.id, attempt, view.nodes, view.tasks_on_node);
  }
  if (task != nullptr && !task->info.partition.empty()) {
    spec.add_job_env(fmt::format("SCORE_PARTITION={}", task->info.partition.str()));
  }
  if (spec.slurm_env()) describe_for_slurm(job, view, spec);
  if (const auto set = last_set_ ? last_set_(job.info.id) : std::string(); !set.empty()) {
    spec.set_restart(set);
    spec.set_append_output(true);
  }
  spec_ = spec.SerializeAsString();
  spec_of_ = attempt;
  if (prove_) proof_ = prove_(job.info.id);
  return spec_;
}

// The nodes of an attempt that is being killed could not finish while its output waits to be read.
void TaskStarter::stop_waiting_for_output(AttemptId attempt) {
  Job* job = head_.jobs.find(job_of(attempt));
  if (job == nullptr || job->progress.placement.attempt != attempt) return;
  job->killed = attempt;
  streams_.release(job->info.id);
}

void TaskStarter::release_held() {
  if (held_.empty()) return;
  head_.commits.after([this, messages = std::exchange(held_, {})](const Status&) {
    for (const HeldMessage& held : messages) {
      if (const auto* start = std::get_if<StartTasks>(&held.message)) {
        const Job* job = head_.jobs.find(job_of(start->attempt));
        if (job == nullptr || job->killed == start->attempt) continue;
      }
      send_now(held.node, held.message);
    }
  });
}

}  // namespace score::head
