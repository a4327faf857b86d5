#include "gang/head/cluster.hpp"

#include "base/exit_codes.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;
using base::Result;

namespace {
constexpr int kInterruptedExitCode = 130;
}  // namespace

Cluster::Impl::Impl(ClusterConfig c)
    : config(std::move(c)), detector_(config.suspect_after, config.dead_after) {}

const Job* Cluster::Impl::find_job(JobId id) const {
  const auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

Job* Cluster::Impl::find_job(JobId id) {
  const auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

// For changes: an error if there is no such job or it has ended.
Result<Job*> Cluster::Impl::known_job(JobId id) {
  Job* job = find_job(id);
  if (job == nullptr) return fail(Errc::NotFound, "no job {}", id);
  if (base::is_final(job->state)) return fail(Errc::WrongState, "job {} has ended", id);
  return job;
}

void Cluster::Impl::settle(TimePoint now, Actions& out) {
  place_waiting(now, out);
  publish(now, out);
}

// ---- what can run at all ----------------------------------------------------------------------

Result<void> Cluster::Impl::check_names(const base::ResourceRequest& request) const {
  for (const auto* list : {&request.only_nodes, &request.except_nodes}) {
    for (const std::string& name : *list) {
      if (!names.contains(name)) return fail(Errc::NotFound, "no node {}", name);
    }
  }
  return {};
}

bool Cluster::Impl::is_allowed(const std::vector<bool>& allowed, NodeIndex index) const {
  return allowed.empty() || (index < allowed.size() && allowed[index]);
}

// On empty nodes. Those that were never seen are taken to be as large as needed.
bool Cluster::Impl::fits_somewhere(const base::ResourceRequest& request, const Shape& shape) const {
  const std::vector<bool> allowed = allowed_nodes(request);
  std::vector<Candidate> room;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    if (!is_allowed(allowed, index)) continue;
    if (node.seen && node.info.memory < shape.memory) continue;
    const bool bounded = node.seen && !request.overlay;
    const std::uint64_t enough = std::uint64_t{limits::kMaxTasksPerNode} * shape.cpus_per_task;
    const auto cores = static_cast<std::uint32_t>(std::min<std::uint64_t>(enough, UINT32_MAX));
    const std::uint32_t tasks = tasks_on_cores(shape, bounded ? node.info.cores : cores);
    if (tasks > 0) room.push_back({index, tasks, 0});
  }
  return choose(shape, room).has_value();
}

// With as few tasks on a core as it takes (docs/adr/0057): where k hold them, more do.
bool Cluster::Impl::fits_shared(const base::ResourceRequest& request, Shape& shape) const {
  if (!config.overcommit || request.own_cores || request.overlay) return false;
  Shape shared = shape;
  std::uint32_t too_few = 1;
  std::uint32_t enough = limits::kMaxTasksPerCore + 1;
  while (enough - too_few > 1) {
    shared.tasks_per_core = too_few + (enough - too_few) / 2;
    (fits_somewhere(request, shared) ? enough : too_few) = shared.tasks_per_core;
  }
  if (enough > limits::kMaxTasksPerCore) return false;
  shape.tasks_per_core = enough;
  return true;
}

// One line that says what is too much of it.
base::Error Cluster::Impl::no_room(const base::ResourceRequest& request, const Shape& shape) const {
  const std::vector<bool> allowed = allowed_nodes(request);
  std::size_t count = 0;
  bool all_seen = true;
  const Node* most_cores = nullptr;
  const Node* most_memory = nullptr;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    if (!is_allowed(allowed, index)) continue;
    const Node& node = nodes[index];
    ++count;
    all_seen &= node.seen;
    if (most_cores == nullptr || node.info.cores > most_cores->info.cores) most_cores = &node;
    if (most_memory == nullptr || node.info.memory > most_memory->info.memory) most_memory = &node;
  }
  if (all_seen && shape.memory > most_memory->info.memory) {
    return fail(Errc::TooLarge, "{} of memory a node were asked for; the most there is are {} ({})",
                base::human_bytes(shape.memory), base::human_bytes(most_memory->info.memory),
                most_memory->info.name);
  }
  const std::uint32_t on_node =
      shape.nodes == 0 ? 1 : (shape.tasks + shape.nodes - 1) / shape.nodes;
  const std::uint64_t cores = std::uint64_t{on_node} * shape.cpus_per_task;
  const bool may_share = config.overcommit && !request.own_cores;
  Shape crowded = shape;
  crowded.tasks_per_core = limits::kMaxTasksPerCore;
  const std::uint32_t most = all_seen ? tasks_on_cores(crowded, most_cores->info.cores) : 0;
  if (may_share && !request.overlay && most > 0 && on_node > most) {
    return fail(Errc::TooLarge,
                "{} tasks a node were asked for; the most there is room for are {} ({}: {} cores, "
                "{} tasks on each)",
                on_node, most, most_cores->info.name, most_cores->info.cores,
                limits::kMaxTasksPerCore);
  }
  if (all_seen && !request.overlay && cores > most_cores->info.cores) {
    const std::uint32_t each = most_cores->info.cores / shape.cpus_per_task;
    const std::uint32_t nodes_needed = each == 0 ? 0 : (shape.tasks + each - 1) / each;
    const bool is_enough = nodes_needed > 0 && nodes_needed <= count;
    return fail(Errc::TooLarge,
                "{} cores a node at the same time were asked for ({} tasks x {}); the most there "
                "is are {} ({}){}",
                cores, on_node, shape.cpus_per_task, most_cores->info.cores, most_cores->info.name,
                is_enough ? fmt::format(": -N {} -n {} may fit", nodes_needed, shape.tasks) : "");
  }
  return fail(Errc::TooLarge, "{} tasks with {} cores each do not fit on {} nodes that qualify{}",
              shape.tasks, shape.cpus_per_task, count,
              may_share ? fmt::format(" (at most {} share a core)", limits::kMaxTasksPerCore) : "");
}

Result<void> Cluster::Impl::check_room(const base::ResourceRequest& request, Shape& shape) const {
  const std::vector<bool> allowed = allowed_nodes(request);
  const auto count = allowed.empty() ? static_cast<std::ptrdiff_t>(nodes.size())
                                     : std::count(allowed.begin(), allowed.end(), true);
  const std::uint32_t wanted = std::max(1U, shape.nodes);
  if (count < std::ptrdiff_t{wanted}) {
    return fail(Errc::TooLarge, "{} nodes were asked for; {} {}", wanted,
                allowed.empty() ? "the cluster has" : "the node lists leave", count);
  }
  if (fits_somewhere(request, shape) || fits_shared(request, shape)) return {};
  return no_room(request, shape);
}

Result<Shape> Cluster::Impl::check(const base::ResourceRequest& request) const {
  if (request.weight < limits::kMinWeight || request.weight > limits::kMaxWeight) {
    return fail(Errc::TooLarge, "weight {} is outside {} ... {}", request.weight,
                limits::kMinWeight, limits::kMaxWeight);
  }
  if (request.scheduled_limit < Duration::zero() || request.wall_limit < Duration::zero()) {
    return fail(Errc::Malformed, "a time limit is negative");
  }
  if (auto known = check_names(request); !known) return known.error();
  Result<Shape> shape = shape_of(request);
  if (!shape) return shape;
  if (auto room = check_room(request, *shape); !room) return room.error();
  return shape;
}

// ---- what users ask ---------------------------------------------------------------------------

void Cluster::Impl::add_job(JobId id, UserId user, const base::ResourceRequest& request,
                            const Shape& shape, std::optional<TimePoint> submitted) {
  Job& job = jobs[id];
  job.id = id;
  job.user = user;
  job.request = request;
  job.shape = shape;
  job.allowed = allowed_nodes(request);
  job.submitted = submitted;
  job.wait = {request.queue != base::Queue::High, -std::int64_t{request.priority}, ++submissions_,
              id};
  ++live_jobs_;
}

Result<void> Cluster::Impl::submit(JobId id, UserId user, const base::ResourceRequest& request,
                                   TimePoint now, Actions& out) {
  if (jobs.contains(id) || id == JobId{0}) return fail(Errc::Exists, "job {} was there before", id);
  if (live_jobs_ >= limits::kMaxActiveJobs) {
    return fail(Errc::Busy, "{} jobs are queued or running already", live_jobs_);
  }
  const Result<Shape> shape = check(request);
  if (!shape) return shape.error();
  add_job(id, user, request, *shape, now);
  Job& job = jobs.at(id);
  if (!request.held) try_new(job, now, out);
  if (job.state == JobState::Pending) out.push_back(JobChanged{id});
  return {};
}

Result<void> Cluster::Impl::cancel(JobId id, EndCause cause, TimePoint now, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  const char* why = "";
  switch (cause) {
    case EndCause::User:
      why = "cancelled by its owner";
      break;
    case EndCause::Operator:
      why = "cancelled by an operator";
      break;
    case EndCause::FrontEndGone:
      why = "its front end went away";
      break;
    case EndCause::Shutdown:
      why = "the cluster was shut down";
      break;
  }
  if (will_requeue(**job)) {  // not any more
    (*job)->ending = JobState::Cancelled;
    (*job)->exit_code = kInterruptedExitCode;
    (*job)->reasons.insert((*job)->reasons.begin(), why);
    out.push_back(JobChanged{id});
    return {};
  }
  end(**job, JobState::Cancelled, why, kInterruptedExitCode, now, out);
  return {};
}

Result<void> Cluster::Impl::signal(JobId id, int signal, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  const JobState state = (*job)->state;
  if (state != JobState::Running && state != JobState::Suspended) {
    return fail(Errc::WrongState, "job {} is {}, not running", id, to_string(state));
  }
  if (signal < 1 || signal > 64) return fail(Errc::Malformed, "there is no signal {}", signal);
  for (std::size_t m = 0; m < (*job)->members.size(); ++m) {
    if ((*job)->members[m] != Member::Started) continue;
    send((*job)->cells.nodes[m], base::SignalTasks{(*job)->attempt(), signal}, out);
  }
  return {};
}

Result<void> Cluster::Impl::suspend(JobId id, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  if ((*job)->state == JobState::Suspended) return {};
  if ((*job)->overlay()) return fail(Errc::Unsupported, "job {} is outside the timetable", id);
  if ((*job)->state != JobState::Running) {
    return fail(Errc::WrongState, "job {} is {}, not running", id, to_string((*job)->state));
  }
  forget_activity(**job);
  change(**job, JobEvent::Suspend, out);
  return {};
}

Result<void> Cluster::Impl::resume(JobId id, TimePoint now, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  if ((*job)->state == JobState::Running) return {};
  if ((*job)->state != JobState::Suspended) {
    return fail(Errc::WrongState, "job {} is {}, not suspended", id, to_string((*job)->state));
  }
  change(**job, JobEvent::Resume, out);
  judge_activity(**job, now, out);
  return {};
}

Result<void> Cluster::Impl::hold(JobId id, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  if ((*job)->state != JobState::Pending) {
    return fail(Errc::WrongState, "job {} is {}, not waiting", id, to_string((*job)->state));
  }
  (*job)->request.held = true;
  waiting_.erase((*job)->wait);
  if (promise_ && promise_->job == id) {
    promise_.reset();
    capacity_grew();
  }
  out.push_back(JobChanged{id});
  return {};
}

Result<void> Cluster::Impl::release(JobId id, TimePoint now, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  if ((*job)->state != JobState::Pending) {
    return fail(Errc::WrongState, "job {} is {}, not waiting", id, to_string((*job)->state));
  }
  if (!(*job)->request.held) return {};
  (*job)->request.held = false;
  const auto possible = check((*job)->request);
  if (!possible) {  // nodes became known meanwhile
    waiting_.insert((*job)->wait);
    end(**job, JobState::LaunchFailed, possible.error().context(), kExitError, now, out);
    return {};
  }
  (*job)->shape = *possible;
  try_new(**job, now, out);
  if ((*job)->state == JobState::Pending) out.push_back(JobChanged{id});
  return {};
}

Result<void> Cluster::Impl::set_weight(JobId id, std::uint32_t weight, Actions& out) {
  const auto job = known_job(id);
  if (!job) return job.error();
  if (weight < limits::kMinWeight || weight > limits::kMaxWeight) {
    return fail(Errc::TooLarge, "weight {} is outside {} ... {}", weight, limits::kMinWeight,
                limits::kMaxWeight);
  }
  (*job)->request.weight = weight;
  dirty = true;
  out.push_back(JobChanged{id});
  return {};
}

// Who waits is in line for its new place at once; who runs will be, should it lose a node.
Result<void> Cluster::Impl::set_priority(JobId id, std::int32_t priority, Actions& out) {
  const auto known = known_job(id);
  if (!known) return known.error();
  Job& job = **known;
  const bool waits = waiting_.erase(job.wait) > 0;
  job.request.priority = priority;
  job.wait.minus_priority = -std::int64_t{priority};
  if (waits) {
    waiting_.insert(job.wait);
    promise_.reset();  // another one may be the first in line
    capacity_grew();
  }
  out.push_back(JobChanged{id});
  return {};
}

// ---- the public face --------------------------------------------------------------------------

Cluster::Cluster(ClusterConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

namespace {

// Runs one change and what follows from it.
template <typename Impl, typename Change>
Actions apply(Impl& impl, TimePoint now, Change&& change) {
  Actions out;
  change(out);
  impl.settle(now, out);
  return out;
}

template <typename Impl, typename Change>
Result<Actions> try_apply(Impl& impl, TimePoint now, Change&& change) {
  Actions out;
  if (Result<void> done = change(out); !done) return done.error();
  impl.settle(now, out);
  return out;
}

}  // namespace

Result<void> Cluster::add_node(NodeId node, std::string name) {
  return impl_->add_node(node, std::move(name));
}

Actions Cluster::node_connected(NodeId node, const base::NodeHello& hello, TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) { impl_->connected(node, hello, now, out); });
}

Actions Cluster::node_disconnected(NodeId node, TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) { impl_->disconnected(node, now, out); });
}

Actions Cluster::heartbeat(NodeId node, TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) { impl_->heartbeat(node, now, out); });
}

Result<Actions> Cluster::drain(NodeId node, std::string reason, TimePoint now) {
  return try_apply(*impl_, now,
                   [&](Actions& out) { return impl_->drain(node, std::move(reason), out); });
}

Result<Actions> Cluster::resume_node(NodeId node, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->resume_node(node, out); });
}

Result<void> Cluster::check(const base::ResourceRequest& request) const {
  if (const auto shape = impl_->check(request); !shape) return shape.error();
  return {};
}

Result<JobView> Cluster::plan(const base::ResourceRequest& request) const {
  return impl_->plan(request);
}

Result<Actions> Cluster::submit(JobId job, UserId user, const base::ResourceRequest& request,
                                TimePoint now) {
  return try_apply(*impl_, now,
                   [&](Actions& out) { return impl_->submit(job, user, request, now, out); });
}

Actions Cluster::recover(const std::vector<RecoveredJob>& jobs, TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) { impl_->recover(jobs, now, out); });
}

Result<Actions> Cluster::cancel(JobId job, EndCause cause, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->cancel(job, cause, now, out); });
}

Result<Actions> Cluster::signal(JobId job, int signal, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->signal(job, signal, out); });
}

Result<Actions> Cluster::suspend(JobId job, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->suspend(job, out); });
}

Result<Actions> Cluster::resume(JobId job, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->resume(job, now, out); });
}

Result<Actions> Cluster::hold(JobId job, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->hold(job, out); });
}

Result<Actions> Cluster::release(JobId job, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->release(job, now, out); });
}

Result<Actions> Cluster::set_weight(JobId job, std::uint32_t weight, TimePoint now) {
  return try_apply(*impl_, now, [&](Actions& out) { return impl_->set_weight(job, weight, out); });
}

Result<Actions> Cluster::set_priority(JobId job, std::int32_t priority, TimePoint now) {
  return try_apply(*impl_, now,
                   [&](Actions& out) { return impl_->set_priority(job, priority, out); });
}

void Cluster::set_overcommit(bool on) {
  impl_->config.overcommit = on;
}

void Cluster::set_max_requeues(std::uint32_t times) {
  impl_->config.max_requeues = times;
}

Result<void> Cluster::set_keep_going(JobId job, bool keep_going) {
  const auto known = impl_->known_job(job);
  if (!known) return known.error();
  (*known)->keep_going = keep_going;
  return {};
}

Actions Cluster::node_says(NodeId node, const base::NodeToHead& message, TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) {
    if (const auto* hello = std::get_if<base::NodeHello>(&message)) {
      return impl_->connected(node, *hello, now, out);
    }
    impl_->said(node, message, now, out);
  });
}

Result<Actions> Cluster::set_quantum(Duration quantum, TimePoint now) {
  if (quantum < limits::kMinQuantum || quantum > limits::kMaxQuantum) {
    return fail(Errc::TooLarge, "quantum {} is outside {} ... {}", base::format_duration(quantum),
                base::format_duration(limits::kMinQuantum),
                base::format_duration(limits::kMaxQuantum));
  }
  return apply(*impl_, now, [&](Actions&) {
    impl_->dirty |= impl_->config.quantum != quantum;
    impl_->config.quantum = quantum;
  });
}

Result<Actions> Cluster::set_max_slots(std::uint32_t slots, TimePoint now) {
  if (slots < 1 || slots > limits::kMaxSlots) {
    return fail(Errc::TooLarge, "{} slots are outside 1 ... {}", slots, limits::kMaxSlots);
  }
  return apply(*impl_, now, [&](Actions&) {
    impl_->config.max_slots = slots;
    impl_->capacity_grew();
  });
}

Actions Cluster::set_idle_detection(bool on, TimePoint now) {
  return apply(*impl_, now, [&](Actions&) {
    impl_->dirty |= impl_->config.idle_detection != on;
    impl_->config.idle_detection = on;
  });
}

Actions Cluster::tick(TimePoint now) {
  return apply(*impl_, now, [&](Actions& out) { impl_->tick(now, out); });
}

std::optional<TimePoint> Cluster::next_deadline() const {
  return impl_->next_deadline();
}

void Cluster::forget(JobId job) {
  const Job* known = impl_->find_job(job);
  if (known != nullptr && base::is_final(known->state)) impl_->jobs.erase(job);
}

Result<JobView> Cluster::job(JobId job, TimePoint now) const {
  const Job* known = impl_->find_job(job);
  if (known == nullptr) return fail(Errc::NotFound, "no job {}", job);
  return impl_->view(*known, now);
}

std::vector<JobId> Cluster::jobs() const {
  std::vector<JobId> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(id);
  return out;
}

Result<NodeView> Cluster::node(NodeId node) const {
  const auto index = impl_->find_node(node);
  if (!index) return fail(Errc::NotFound, "no node {}", node);
  return impl_->view(impl_->nodes[*index]);
}

Result<NodeId> Cluster::node_by_name(const std::string& name) const {
  const auto found = impl_->names.find(name);
  if (found == impl_->names.end()) return fail(Errc::NotFound, "no node {}", name);
  return impl_->nodes[found->second].id;
}

std::vector<NodeId> Cluster::nodes() const {
  std::vector<NodeId> out;
  for (const auto& [id, index] : impl_->node_index) out.push_back(id);
  return out;
}

MatrixView Cluster::matrix() const {
  return impl_->matrix_view();
}

const ClusterCounters& Cluster::counters() const {
  return impl_->counters;
}

const ClusterConfig& Cluster::config() const {
  return impl_->config;
}

Result<void> Cluster::check_invariants(TimePoint now) const {
  return impl_->check_invariants(now);
}

}  // namespace score::gang
