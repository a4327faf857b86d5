// This file is tested by lifecycle_test.cpp and gang/head/launch_test.cpp.
#include "gang/lifecycle/launching.hpp"

#include "gang/lifecycle/text.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {

// A failed launch is over within launch_deadline, so the last part of it is reserved for killing
// what the nodes have started.
Duration answer_limit(const ClusterConfig& config) {
  return config.launch_deadline * 17 / 20;
}

Duration kill_limit(const ClusterConfig& config) {
  return std::min<Duration>(config.kill_deadline, config.launch_deadline / 10) +
         config.epilog_limit;
}

}  // namespace

template <typename Members>
std::string Launching::names_of(const Job& job, const Members& members) const {
  std::vector<std::string> names;
  for (const std::size_t m : members) names.push_back(tables_.nodes.name(job.cells.nodes[m]));
  return fmt::format("{}", fmt::join(names, ","));
}

void Launching::launch(Job& job, Step& step) {
  const std::size_t count = job.cells.nodes.size();
  // Two attempts with the same number would be mistaken for each other.
  job.attempts = std::max(job.attempts, job.newest_seen) + 1;
  job.members.edit().ask_all(count);
  if (is_bare(job.request)) job.members.edit().keep_first();
  job.forget_activity();
  job.is_young = job.has_row() && tables_.config.young_time > Duration::zero();
  job.idleness.edit().begin(count);
  tables_.jobs.change(job, JobEvent::Place, step);
  tables_.deadlines.set(job.id, DeadlineKind::Launch, step.now + answer_limit(tables_.config));
  for (const std::size_t m : job.members->in(Member::Asked)) prepare(job, m, step);
}

// A step without units of its own has those of its job.
std::vector<base::GenericShare> Launching::units_of(const Job& job, NodeIndex node) const {
  const Job& gang = job.units.empty() ? tables_.jobs.gang_of(job) : job;
  const auto member = gang.member_on(node);
  return member && *member < gang.units.size() ? gang.units[*member]
                                               : std::vector<base::GenericShare>{};
}

// Returns the tasks per node. An allocation has one, the script; its other nodes only have their
// servers of its volume.
std::vector<std::uint32_t> Launching::tasks_of(const Job& job) const {
  if (!job.request.allocation) return job.tasks_on_node;
  std::vector<std::uint32_t> tasks(is_bare(job.request) ? 1 : job.cells.nodes.size(), 0);
  tasks.front() = 1;
  return tasks;
}

void Launching::prepare(const Job& job, std::size_t member, Step& step) const {
  base::PrepareTasks message;
  message.placed.attempt = job.attempt();
  message.placed.user = job.user;
  message.placed.node_index = static_cast<std::uint32_t>(member);
  message.placed.tasks_on_node = tasks_of(job);
  message.placed.distribution = job.request.distribution;
  message.placed.restarts = job.restarts;
  message.placed.cores = job.cells.cores[member];
  message.placed.memory = job.request.memory_per_node;
  message.placed.generic = units_of(job, job.cells.nodes[member]);
  message.placed.scratch = job.scratch;
  if (tables_.config.names_nodes && !job.request.allocation &&
      message.placed.tasks_on_node.size() > 1) {
    for (const NodeIndex node : job.cells.nodes) {
      message.placed.nodes.push_back(tables_.nodes[node].id.value());
    }
  }
  tables_.nodes.send(job.cells.nodes[member], std::move(message), step);
}

void Launching::ask_again(Job& job, std::size_t member, Step& step) {
  job.members.edit().ask_again(member);
  prepare(job, member, step);
}

void Launching::prepared(Job& job, std::size_t member, Step& step) {
  if (job.state != JobState::Launching || !job.members.edit().prepared(member)) return;
  job.started = step.now;
  ++tables_.counters.jobs_started;
  tables_.jobs.change(job, JobEvent::AllPrepared, step);
  if (job.request.wall_limit > Duration::zero()) {
    tables_.deadlines.set(job.id, DeadlineKind::Wall, step.now + job.request.wall_limit);
  }
  if (job.overlay()) return start_all(job, step);
  start_due_.insert(job.id);
}

// A job that has ended in the meantime, perhaps to be launched again, is not started.
void Launching::start_due(Step& step) {
  for (const JobId id : std::exchange(start_due_, {})) {
    Job* job = tables_.jobs.find(id);
    if (job != nullptr && job->is_managed()) start_all(*job, step);
  }
}

void Launching::start_all(Job& job, Step& step) {
  for (std::size_t m = 0; m < job.members->count(); ++m) {
    if (job.members->has_tasks(m)) start(job, m, step);
  }
}

void Launching::start(Job& job, std::size_t member, Step& step) {
  job.members.edit().start(member, publisher_.scheduled(job, step.now));
  tables_.deadlines.set(job.id, DeadlineKind::Begin, step.now + tables_.config.launch_deadline);
  tables_.nodes.send(job.cells.nodes[member], base::StartTasks{job.attempt()}, step);
}

// The node's reports about its share so far concerned tasks that did not exist yet. If the share is
// idle all the same, the node reports that again.
void Launching::began(Job& job, std::size_t member, Step& step) {
  if (!job.members.edit().began(member)) return;
  if (job.members->not_begun().empty() && job.request.limit_signal != 0) {
    tables_.deadlines.set(job.id, DeadlineKind::Signal, step.now);
  }
  job.idleness.edit().report(member, {});
  if (job.members->not_begun().empty()) idle_.judge(job, step);
}

void Launching::launch_overdue(Job& job, Step& step) {
  if (job.state != JobState::Launching) return;
  const ClusterConfig& config = tables_.config;
  const auto silent = job.members->in(Member::Asked);
  const bool lost_node = std::any_of(silent.begin(), silent.end(), [&](std::size_t member) {
    return tables_.nodes[job.cells.nodes[member]].state != NodeState::Up;
  });
  ending_.end(job,
              {lost_node ? JobState::NodeFailed : JobState::LaunchFailed,
               fmt::format("no answer within {} from {}", seconds(answer_limit(config)),
                           names_of(job, silent)),
               base::kExitError, Fault::Machine},
              step);
  if (job.state == JobState::Completing) {
    tables_.deadlines.set(job.id, DeadlineKind::Kill, step.now + kill_limit(config));
  }
}

// Tasks are forked in the job's own slices, so its own time counts. A job that is suspended, or has
// one slice in many, is given as much time as it needs.
void Launching::begin_overdue(Job& job, Step& step) {
  if (job.members->not_begun().empty() || job.outcome->ending()) return;
  const ClusterConfig& config = tables_.config;
  const Duration had = publisher_.scheduled(job, step.now) - job.members->start_scheduled();
  const Duration missing = config.launch_deadline - had;
  if (missing > Duration::zero()) {
    return tables_.deadlines.set(job.id, DeadlineKind::Begin,
                                 step.now + std::max(missing, config.quantum));
  }
  ending_.end(job,
              {JobState::LaunchFailed,
               fmt::format("no task began within {} on {}", seconds(config.launch_deadline),
                           names_of(job, job.members->not_begun())),
               base::kExitError, Fault::Machine},
              step);
}

}  // namespace score::gang
