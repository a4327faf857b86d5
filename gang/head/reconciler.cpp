// The head kills anything that runs on a node but has ended for the head or is unknown to it. Until
// it is gone (a zombie) nothing new is placed on the node, so cores and memory are never in use
// twice.
// This file is tested by cluster_test.cpp, launch_test.cpp and placement_test.cpp.
#include "gang/head/reconciler.hpp"

#include "gang/lifecycle/text.hpp"
#include "gang/schedule/request_check.hpp"

#include <algorithm>

namespace score::gang {

namespace {

constexpr std::uint64_t kMostUnstored = 4;  // launches by heads that were killed; chosen

}  // namespace

// ---- hello ------------------------------------------------------------------------------------

void Reconciler::connected(NodeId id, const base::NodeHello& hello, Step& step) {
  NodeTable& nodes = p_.tables.nodes;
  const auto index = nodes.find(id);
  const bool is_sane = index && hello.info.name == nodes.name(*index) && hello.info.cores >= 1 &&
                       hello.info.cores <= base::limits::kMaxCoresPerNode;
  if (!is_sane) {
    ++p_.tables.counters.stale_reports;
    return;
  }
  const bool is_news = !nodes[*index].seen || nodes[*index].info != hello.info;
  accept_hardware(*index, hello.info, step);
  nodes.connect(*index, step);
  const bool follows = hello.epoch != Epoch{0};
  p_.publisher.node_connected(*index, follows);
  p_.placer.capacity_grew();
  compare(*index, hello, step);
  stop_awaiting(*index);
  if (is_news) end_impossible(step);
  if (follows || !p_.placer.on_node(*index).jobs.empty()) p_.tables.jobs.mark_changed();
}

// A node that reconnects with less than its jobs hold has lost them: their cores do not exist.
void Reconciler::accept_hardware(NodeIndex node, const base::NodeInfo& info, Step& step) {
  const bool is_smaller = info.cores < p_.placer.matrix().cores(node) ||
                          info.memory < p_.placer.on_node(node).memory ||
                          info.scratch < p_.placer.on_node(node).scratch ||
                          !p_.placer.units().on_node(node).check(info.generic);
  if (is_smaller) {
    lose_jobs(node, fmt::format("{} came back with different hardware", p_.tables.nodes.name(node)),
              step);
  }
  const bool has_changed =
      !p_.tables.nodes[node].seen || p_.tables.nodes[node].info.features != info.features;
  p_.tables.nodes.set_hardware(node, info);
  p_.placer.follow_hardware(node);
  if (has_changed) p_.placer.follow_features(node);
}

// Jobs that were accepted before all nodes were seen may turn out to be too large.
void Reconciler::end_impossible(Step& step) {
  const NodeTable& nodes = p_.tables.nodes;
  if (!nodes.all_seen()) return;
  std::vector<Shape> possible;
  const std::map<WaitKey, Job*> waiting = p_.placer.waiting();
  for (const auto& [wait, waiter] : waiting) {
    Job& job = *waiter;
    const bool is_plain = job.allowed.empty() && !job.overlay() && job.shape.tasks_per_core == 1 &&
                          job.request.generic.empty();
    const auto as_small = [&job](const Shape& s) { return needs_no_less(s, job.shape); };
    if (is_plain && std::any_of(possible.begin(), possible.end(), as_small)) continue;
    const auto shape = check_waiting(nodes, job.request, p_.tables.config.overcommit);
    if (!shape) {
      p_.ending.end(job, {JobState::LaunchFailed, shape.error().context()}, step);
    } else {
      job.shape = *shape;
      if (is_plain) possible.push_back(job.shape);
    }
  }
}

void Reconciler::compare(NodeIndex node, const base::NodeHello& hello, Step& step) {
  const std::set<JobId> expected = p_.placer.on_node(node).jobs;
  std::set<JobId> reported;
  for (const base::AttemptReport& report : hello.attempts) {
    Job* job = p_.tables.jobs.find(base::job_of(report.attempt));
    const auto member = job != nullptr ? job->member_on(node) : std::nullopt;
    if (member && job->attempt() == report.attempt && job->members->has_tasks(*member)) {
      if (reported.insert(job->id).second) compare_known(*job, *member, report, step);
      continue;
    }
    const bool is_end = report.phase == base::AttemptPhase::Exited;
    if (is_end && is_known_end(node, report.attempt)) continue;
    ++p_.tables.counters.stale_reports;
    if (job != nullptr) note_attempt(*job, report.attempt);
    if (is_end) {
      p_.tables.nodes.send(node, base::ForgetTasks{report.attempt}, step);
    } else {
      kill_as_zombie(node, report.attempt, step);
    }
  }
  for (const JobId id : expected) {
    Job* job = p_.tables.jobs.find(id);
    if (reported.contains(id) || job == nullptr) continue;
    const auto member = job->member_on(node);
    if (member && job->members->has_tasks(*member)) missing(*job, *member, step);
  }
}

// A head that was killed may have launched the attempt before it stored that. A node that claims
// much greater numbers is wrong, and must not use up those of a job: there are 255.
void Reconciler::note_attempt(Job& job, AttemptId attempt) {
  const std::uint64_t number = attempt.value() % base::kAttemptsPerJob;
  const bool is_possible =
      number <= job.attempts + kMostUnstored && number + 2 < base::kAttemptsPerJob;
  if (is_possible) job.newest_seen = std::max(job.newest_seen, number);
}

void Reconciler::compare_known(Job& job, std::size_t member, const base::AttemptReport& report,
                               Step& step) {
  using base::AttemptPhase;
  if (report.phase == AttemptPhase::Exited) {
    return p_.ending.exited(job, member,
                            {report.attempt, report.exits, report.reason, report.filled,
                             report.oom_kills, report.usage},
                            step);
  }
  if (job.state == JobState::Completing) {
    return p_.tables.nodes.send(job.cells.nodes[member], base::KillTasks{report.attempt}, step);
  }
  if (job.state == JobState::Launching) {
    if (report.phase != AttemptPhase::Preparing) p_.launching.prepared(job, member, step);
    return;
  }
  for (const base::TaskExit& exit : report.exits) p_.ending.task_ended(job, member, exit, step);
  if (job.state == JobState::Completing) return;
  if (report.phase == AttemptPhase::Preparing) return missing(job, member, step);
  // If tasks run, the answer to a second StartTasks shows whether they have begun.
  const bool is_unclear = report.phase == AttemptPhase::Running
                              ? job.members->not_begun().contains(member)
                              : !p_.launching.is_start_due(job.id);
  if (is_unclear) p_.launching.start(job, member, step);
}

// The head has the attempt there, but the node does not.
void Reconciler::missing(Job& job, std::size_t member, Step& step) {
  if (job.state == JobState::Launching) {  // nothing ran yet
    return p_.launching.ask_again(job, member, step);
  }
  const NodeIndex node = job.cells.nodes[member];
  p_.ending.lost_node(job, fmt::format("{} came back without the job", p_.tables.nodes.name(node)),
                      p_.tables.nodes[node].lost_at, step);
  p_.ending.gone(job, member, step);
}

// ---- zombies ----------------------------------------------------------------------------------

void Reconciler::kill_as_zombie(NodeIndex node, AttemptId attempt, Step& step) {
  p_.tables.nodes.add_zombie(node, attempt);
  p_.tables.nodes.send(node, base::KillTasks{attempt}, step);
}

// The node keeps its report until the end of the whole job is stored, and repeats it to another
// head.
bool Reconciler::is_known_end(NodeIndex node, AttemptId attempt) const {
  const Job* job = p_.tables.jobs.find(base::job_of(attempt));
  if (job == nullptr || !job->placed || job->attempt() != attempt) return false;
  const auto member = job->member_on(node);
  return member && job->members->is_gone(*member) &&
         !p_.tables.nodes[node].zombies.contains(attempt);
}

void Reconciler::stranger(NodeIndex node, AttemptId attempt, bool is_gone, Step& step) {
  if (is_gone && is_known_end(node, attempt)) return;
  NodeTable& nodes = p_.tables.nodes;
  const bool is_zombie = nodes[node].zombies.contains(attempt);
  if (!is_zombie) ++p_.tables.counters.stale_reports;
  if (is_gone) {
    nodes.send(node, base::ForgetTasks{attempt}, step);
    if (nodes.remove_zombie(node, attempt, step)) p_.placer.capacity_grew();
  } else if (!is_zombie) {
    kill_as_zombie(node, attempt, step);
  }
}

void Reconciler::kill_overdue(Job& job, Step& step) {
  Tables& tables = p_.tables;
  tables.deadlines.set(job.id, DeadlineKind::Kill,
                       step.now + tables.config.kill_deadline + tables.config.epilog_limit);
  const Members before = *job.members;
  for (std::size_t m = 0; m < before.count(); ++m) {
    if (!before.has_tasks(m)) continue;
    const NodeIndex node = job.cells.nodes[m];
    if (!tables.nodes[node].connected) continue;
    kill_as_zombie(node, job.attempt(), step);
    tables.nodes.set_stuck(node, step);
    p_.ending.gone(job, m, step);
    if (job.members->remaining() == 0) return;  // it has ended, or is in the queue again
  }
}

// ---- loss -------------------------------------------------------------------------------------

void Reconciler::disconnected(NodeId id, bool was_announced, Step& step) {
  const auto node = p_.tables.nodes.find(id);
  if (!node || !p_.tables.nodes[*node].connected) return;
  p_.tables.nodes.disconnect(*node, was_announced, step);
  for (const JobId id_there : p_.placer.on_node(*node).jobs) {
    p_.meetings.hold_complete(p_.tables.jobs.at(id_there), step);
  }
}

void Reconciler::advance(Step& step) {
  NodeTable& nodes = p_.tables.nodes;
  for (const FailureDetector::Change& change : nodes.advance(step)) {
    if (change.verdict != Verdict::Dead) continue;
    const NodeIndex node = *nodes.find(change.node);
    std::string reason = fmt::format("no heartbeat for {}", seconds(change.silent));
    if (nodes.is_awaited(node)) {
      reason = fmt::format("did not rejoin within {}", seconds(p_.tables.config.rejoin_grace));
    } else if (!nodes[node].connected) {
      reason = nodes[node].announced ? "its daemon was stopped and did not start again"
                                     : "its connection broke and it did not reconnect";
    }
    node_down(node, reason, step);
  }
}

void Reconciler::node_down(NodeIndex node, const std::string& reason, Step& step) {
  p_.tables.nodes.set_down(node, reason, step);
  lose_jobs(node, fmt::format("{} lost: {}", p_.tables.nodes.name(node), reason), step);
  stop_awaiting(node);
}

void Reconciler::lose_jobs(NodeIndex node, const std::string& reason, Step& step) {
  const std::set<JobId> lost = p_.placer.on_node(node).jobs;
  for (const JobId id : lost) {
    Job& job = p_.tables.jobs.at(id);
    const auto member = job.member_on(node);
    if (!member || job.members->is_gone(*member)) continue;
    // The end comes first, so that the other nodes get KillTasks; then nothing is awaited from this
    // node.
    p_.ending.lost_node(job, reason, p_.tables.nodes[node].lost_at, step);
    p_.ending.gone(job, *member, step);
  }
}

// The last node that a restarted head waited for has connected or was given up.
void Reconciler::stop_awaiting(NodeIndex node) {
  if (!p_.tables.nodes.stop_awaiting(node)) return;
  p_.placer.capacity_grew();
  p_.tables.jobs.mark_changed();
}

}  // namespace score::gang
