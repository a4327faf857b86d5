// Nodes come and go. A node that says hello tells which attempts it has; what the head holds of it
// is compared with that, attempt by attempt. What runs there but has ended for the head, or was
// never heard of, is killed; until it is gone (a zombie) nothing new is placed on the node, so
// cores and memory are never in use twice.
// It is tested by cluster_test.cpp.
#include "base/exit_codes.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

using base::Errc;
using base::fail;

namespace {

constexpr Epoch kNoSuchEpoch{std::uint64_t{1} << 63U};  // or one node could use up all numbers

// A head that is this late was kept from running itself: what nodes have answered meanwhile may be
// waiting to be read.
constexpr Duration kOwnStall = std::chrono::seconds{1};

bool is_answer(DeadlineKind kind) {
  return kind == DeadlineKind::Launch || kind == DeadlineKind::Begin || kind == DeadlineKind::Kill;
}

std::string seconds(Duration d) {
  return fmt::format("{:.1f}s", std::chrono::duration<double>(d).count());
}

}  // namespace

base::Result<void> Cluster::Impl::add_node(NodeId id, std::string name) {
  if (node_index.contains(id)) return fail(Errc::Exists, "node {} is there already", id);
  if (names.contains(name)) return fail(Errc::Exists, "node {} is there already", name);
  if (nodes.size() >= base::limits::kMaxNodes) {
    return fail(Errc::TooLarge, "more than {} nodes", base::limits::kMaxNodes);
  }
  const NodeIndex index = matrix_.add_node();
  node_index.emplace(id, index);
  names.emplace(name, index);
  Node& node = nodes.emplace_back();
  node.id = id;
  node.info.name = std::move(name);
  // Whoever is there already knows it too.
  if (promise_) promise_->nodes.resize(nodes.size());
  for (auto& [job_id, job] : jobs) job.allowed = allowed_nodes(job.request);
  return {};
}

std::optional<NodeIndex> Cluster::Impl::find_node(NodeId id) const {
  const auto found = node_index.find(id);
  if (found == node_index.end()) return std::nullopt;
  return found->second;
}

void Cluster::Impl::send(NodeIndex node, base::HeadToNode message, Actions& out) const {
  if (nodes[node].connected) out.push_back(SendToNode{nodes[node].id, std::move(message)});
}

void Cluster::Impl::set_state(Node& node, NodeState state, Actions& out) {
  if (node.state == state) return;
  node.state = state;
  if (state == NodeState::Up) capacity_grew();
  out.push_back(NodeChanged{node.id});
}

void Cluster::Impl::refresh_state(Node& node, Actions& out) {
  if (!node.connected) return;
  const bool good = detector_.verdict(node.id) == Verdict::Alive && !node.stuck;
  set_state(node, good ? NodeState::Up : NodeState::Suspect, out);
}

// ---- hello ------------------------------------------------------------------------------------

void Cluster::Impl::connected(NodeId id, const base::NodeHello& hello, TimePoint now,
                              Actions& out) {
  const auto index = find_node(id);
  const bool sane = index && hello.info.name == nodes[*index].info.name && hello.info.cores >= 1 &&
                    hello.info.cores <= base::limits::kMaxCoresPerNode &&
                    hello.epoch < kNoSuchEpoch;
  if (!sane) {
    ++counters.stale_reports;
    return;
  }
  Node& node = nodes[*index];
  const bool news = !node.seen || node.info != hello.info;
  accept_hardware(*index, hello.info, now, out);
  node.connected = true;
  node.awaited = node.stuck = false;
  node.down_reason.clear();
  node.zombies.clear();
  node.column.reset();                                 // whatever it follows, it is told anew
  if (hello.epoch == Epoch{0}) node.column.emplace();  // it follows nothing
  node.column_start = TimePoint{};
  epoch_ = std::max(epoch_, hello.epoch);
  detector_.watch(id, now);
  refresh_state(node, out);
  capacity_grew();
  reconcile(*index, hello, now, out);
  end_recovery();
  if (news) end_impossible(now, out);
  dirty |= !node.column || !node.jobs.empty();
}

// Jobs that were accepted while some nodes had not been seen may turn out to be too large.
void Cluster::Impl::end_impossible(TimePoint now, Actions& out) {
  const auto seen = [](const Node& n) { return n.seen; };
  if (!std::all_of(nodes.begin(), nodes.end(), seen)) return;
  std::vector<Shape> possible;
  const std::set<WaitKey> waiting = waiting_;
  for (const WaitKey& wait : waiting) {
    Job& job = jobs.at(wait.job);
    const bool plain = job.allowed.empty() && !job.overlay() && job.shape.tasks_per_core == 1;
    const auto as_small = [&job](const Shape& s) { return needs_no_less(s, job.shape); };
    if (plain && std::any_of(possible.begin(), possible.end(), as_small)) continue;
    const auto checked = check(job.request);
    if (!checked) {
      end(job, JobState::LaunchFailed, checked.error().context(), kExitError, now, out);
    } else {
      job.shape = *checked;
      if (plain) possible.push_back(job.shape);
    }
  }
}

// A node that comes back smaller than what its jobs hold has lost them: their cores are not there.
void Cluster::Impl::accept_hardware(NodeIndex index, const base::NodeInfo& info, TimePoint now,
                                    Actions& out) {
  Node& node = nodes[index];
  if (info.cores < matrix_.cores(index) || info.memory < node.reserved) {
    lose_jobs(index, fmt::format("{} came back with other hardware", node.info.name), now, out);
  }
  node.info = info;
  node.seen = true;
  apply_hardware(index);
}

// The matrix follows when no job holds cores there any more; until then nothing is placed there.
void Cluster::Impl::apply_hardware(NodeIndex index) {
  if (!nodes[index].seen || matrix_.cores(index) == nodes[index].info.cores) return;
  if (matrix_.set_cores(index, nodes[index].info.cores)) capacity_grew();
}

void Cluster::Impl::reconcile(NodeIndex index, const base::NodeHello& hello, TimePoint now,
                              Actions& out) {
  const std::set<JobId> expected = nodes[index].jobs;
  std::set<JobId> reported;
  for (const base::AttemptReport& report : hello.attempts) {
    Job* job = find_job(base::job_of(report.attempt));
    const auto member = job != nullptr ? member_of(*job, index) : std::nullopt;
    if (!member || job->attempt() != report.attempt || job->members[*member] == Member::Gone) {
      ++counters.stale_reports;
      if (report.phase == base::AttemptPhase::Exited) {
        send(index, base::ForgetTasks{report.attempt}, out);
      } else {
        bury(index, report.attempt, out);
      }
      continue;
    }
    if (reported.insert(job->id).second) reconcile_known(*job, *member, report, now, out);
  }
  for (const JobId id : expected) {
    Job* job = find_job(id);
    if (reported.contains(id) || job == nullptr) continue;
    const auto member = member_of(*job, index);
    if (member && job->members[*member] != Member::Gone) {
      reconcile_missing(*job, *member, now, out);
    }
  }
}

void Cluster::Impl::reconcile_known(Job& job, std::size_t member, const base::AttemptReport& report,
                                    TimePoint now, Actions& out) {
  if (report.phase == base::AttemptPhase::Exited) {
    return exited(job, member, {report.attempt, report.exits, report.reason}, now, out);
  }
  if (job.state == JobState::Completing) {
    return send(job.cells.nodes[member], base::KillTasks{report.attempt}, out);
  }
  if (job.state == JobState::Launching) {
    if (report.phase != base::AttemptPhase::Preparing) prepared(job, member, now, out);
    return;
  }
  for (const base::TaskExit& exit : report.exits) {
    if (record_exit(job, member, exit)) judge_exit(job, member, exit, now, out);
  }
  if (job.state == JobState::Completing) return;
  if (report.phase == base::AttemptPhase::Running) {
    // Its answer tells whether the tasks have begun.
    if (job.to_begin.contains(member)) start_on(job, member, now, out);
    return;
  }
  if (report.phase == base::AttemptPhase::Preparing) {
    return reconcile_missing(job, member, now, out);
  }
  if (!start_due_.contains(job.id)) start_on(job, member, now, out);
}

// The head thinks the node has the attempt, and the node says it has not.
void Cluster::Impl::reconcile_missing(Job& job, std::size_t member, TimePoint now, Actions& out) {
  if (job.state == JobState::Launching) {  // nothing ran yet: ask again
    if (job.members[member] == Member::Prepared) ++job.waited_for;
    job.members[member] = Member::Asked;
    return prepare_on(job, member, out);
  }
  end(job, JobState::NodeFailed, fmt::format("{} came back without the job", name_of(job, member)),
      kExitError, now, out);
  gone(job, member, now, out);
}

void Cluster::Impl::bury(NodeIndex node, AttemptId attempt, Actions& out) {
  if (nodes[node].zombies.size() < base::limits::kMaxJobsPerNode) {
    nodes[node].zombies.insert(attempt);
  }
  send(node, base::KillTasks{attempt}, out);
}

void Cluster::Impl::resurrect(NodeIndex index, AttemptId attempt, Actions& out) {
  Node& node = nodes[index];
  node.zombies.erase(attempt);
  send(index, base::ForgetTasks{attempt}, out);
  if (!node.zombies.empty()) return;
  node.stuck = false;
  capacity_grew();
  refresh_state(node, out);
}

// ---- loss -------------------------------------------------------------------------------------

void Cluster::Impl::disconnected(NodeId id, TimePoint now, Actions& out) {
  const auto index = find_node(id);
  if (!index || !nodes[*index].connected) return;
  Node& node = nodes[*index];
  node.connected = false;
  detector_.lost_link(id, now);
  set_state(node, NodeState::Suspect, out);
  for (const JobId job : node.jobs) {
    if (Job* waiting = find_job(job)) hold_meetings(*waiting, out);
  }
}

void Cluster::Impl::heartbeat(NodeId id, TimePoint now, Actions& out) {
  const auto index = find_node(id);
  if (!index || !nodes[*index].connected) {
    ++counters.stale_reports;
    return;
  }
  if (detector_.heard(id, now)) refresh_state(nodes[*index], out);
}

void Cluster::Impl::node_down(NodeIndex index, const std::string& reason, TimePoint now,
                              Actions& out) {
  Node& node = nodes[index];
  node.connected = false;
  node.awaited = false;
  node.down_reason = reason;
  set_state(node, NodeState::Down, out);
  lose_jobs(index, fmt::format("{} lost: {}", node.info.name, reason), now, out);
  end_recovery();
}

void Cluster::Impl::lose_jobs(NodeIndex index, const std::string& reason, TimePoint now,
                              Actions& out) {
  const std::set<JobId> lost = nodes[index].jobs;
  for (const JobId id : lost) {
    Job* job = find_job(id);
    const auto member = job != nullptr ? member_of(*job, index) : std::nullopt;
    if (!member || job->members[*member] == Member::Gone) continue;
    // First the end, so that the others are killed; then nothing is left to wait for here.
    end(*job, JobState::NodeFailed, reason, kExitError, now, out);
    gone(*job, *member, now, out);
  }
}

// ---- operators --------------------------------------------------------------------------------

base::Result<void> Cluster::Impl::drain(NodeId id, std::string reason, Actions& out) {
  const auto index = find_node(id);
  if (!index) return fail(Errc::NotFound, "no node {}", id);
  nodes[*index].drained = true;
  nodes[*index].drain_reason = std::move(reason);
  out.push_back(NodeChanged{id});
  if (promise_ && promise_->nodes[*index]) capacity_grew();  // look for another place
  return {};
}

base::Result<void> Cluster::Impl::resume_node(NodeId id, Actions& out) {
  const auto index = find_node(id);
  if (!index) return fail(Errc::NotFound, "no node {}", id);
  if (!nodes[*index].drained) return {};
  nodes[*index].drained = false;
  nodes[*index].drain_reason.clear();
  out.push_back(NodeChanged{id});
  capacity_grew();
  return {};
}

// ---- time -------------------------------------------------------------------------------------

void Cluster::Impl::tick(TimePoint now, Actions& out) {
  for (const FailureDetector::Change& change : detector_.advance(now)) {
    const auto index = find_node(change.node);
    if (!index) continue;
    if (change.verdict == Verdict::Suspect) {
      set_state(nodes[*index], NodeState::Suspect, out);
    } else if (nodes[*index].awaited) {
      node_down(*index, fmt::format("did not rejoin within {}", seconds(config.rejoin_grace)), now,
                out);
    } else {
      node_down(*index, fmt::format("no heartbeat for {}", seconds(change.silent)), now, out);
    }
  }
  while (!deadlines_.empty() && std::get<TimePoint>(*deadlines_.begin()) <= now) {
    const auto [at, kind, id] = *deadlines_.begin();
    deadlines_.erase(deadlines_.begin());
    Job* job = find_job(id);
    if (job == nullptr) continue;
    job->deadlines[static_cast<std::size_t>(kind)].reset();
    if (is_answer(kind) && now - at > kOwnStall) {
      set_deadline(*job, kind, now + kOwnStall);
    } else {
      deadline_due(*job, kind, now, out);
    }
  }
}

std::optional<TimePoint> Cluster::Impl::next_deadline() const {
  std::optional<TimePoint> next = detector_.next_deadline();
  const auto consider = [&next](TimePoint t) { next = next ? std::min(*next, t) : t; };
  if (!deadlines_.empty()) consider(std::get<TimePoint>(*deadlines_.begin()));
  if (dirty && !recovering_) consider(publish_not_before_);
  return next;
}

}  // namespace score::gang
