#include "gang/head/cluster.hpp"

#include "gang/forecast/expected_start.hpp"
#include "gang/forecast/share_reason.hpp"
#include "gang/lifecycle/text.hpp"
#include "gang/schedule/request_check.hpp"
#include "gang/schedule/room.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;
using base::Result;
using base::Setting;

namespace {

// A head that is this late was kept from running, so answers of the nodes may be waiting to be
// read.
constexpr Duration kOwnStall = std::chrono::seconds{1};

bool is_for_answers(DeadlineKind kind) {
  return kind == DeadlineKind::Launch || kind == DeadlineKind::Begin || kind == DeadlineKind::Kill;
}

}  // namespace

Cluster::Cluster(ClusterConfig config)
    : tables_(config),
      placer_(tables_),
      publisher_(tables_, placer_.matrix()),
      meetings_(tables_.nodes),
      ending_(tables_, placer_, publisher_, meetings_),
      idle_(tables_, ending_),
      parking_(tables_, placer_),
      launching_(tables_, publisher_, ending_, idle_),
      reconciler_({tables_, placer_, publisher_, meetings_, ending_, launching_}),
      reports_({tables_, placer_, meetings_, ending_, idle_, launching_, reconciler_, parking_}),
      requests_({tables_, placer_, ending_, idle_, launching_, publisher_, parking_}),
      recovery_(tables_, placer_, ending_) {}

template <typename Change>
Actions Cluster::apply(TimePoint now, Change&& change) {
  Step step{now};
  begin(step);
  change(step);
  settle(step);
  return std::move(step.actions);
}

template <typename Change>
Result<Actions> Cluster::try_apply(TimePoint now, Change&& change) {
  Step step{now};
  begin(step);
  if (Result<void> done = change(step); !done) return done.error();
  settle(step);
  return std::move(step.actions);
}

// A failed change returns no actions, so the effects of reservations that have begun are left to
// settle().
void Cluster::begin(const Step& step) {
  if (!tables_.calendar.advance(step.now)) return;
  placer_.capacity_grew();
  is_calendar_new_ = true;
}

void Cluster::settle(Step& step) {
  if (std::exchange(is_calendar_new_, false)) leave_reserved_nodes(step);
  parking_.settle(step);
  for (const JobId job : placer_.place_waiting(step.now)) {
    launching_.launch(tables_.jobs.at(job), step);
  }
  if (publisher_.publish(step)) launching_.start_due(step);
}

Actions Cluster::reorder(TimePoint now) {
  return apply(now, [&](Step&) { placer_.reorder(); });
}

// ---- nodes ------------------------------------------------------------------------------------

Result<void> Cluster::add_node(NodeId node, std::string name) {
  const std::size_t before = tables_.nodes.size();
  if (auto added = tables_.nodes.add(node, std::move(name)); !added) return added.error();
  if (tables_.nodes.size() == before) return {};  // a removed node is back
  placer_.add_node();
  publisher_.add_node();
  return {};
}

Result<void> Cluster::check_removal(NodeId node) const {
  const auto index = tables_.nodes.find(node);
  if (!index) return fail(Errc::NotFound, "no node {}", node);
  const Node& found = tables_.nodes[*index];
  const std::string& name = found.info.name;
  if (!found.drained) {
    return fail(Errc::WrongState, "{0} is not drained: first run `scadm drain {0}`", name);
  }
  if (placer_.on_node(*index).jobs.empty() && found.zombies.empty()) return {};
  return fail(Errc::WrongState, "jobs are still on {}: wait until they have ended", name);
}

Result<Actions> Cluster::remove_node(NodeId node, TimePoint now) {
  if (auto possible = check_removal(node); !possible) return possible.error();
  return apply(now, [&](Step& step) {
    const NodeIndex index = *tables_.nodes.find(node);
    tables_.nodes.remove(index, step);
    placer_.follow_hardware(index);
    placer_.follow_features(index);
    placer_.leave_node(index);
  });
}

Actions Cluster::node_connected(NodeId node, const base::NodeHello& hello, TimePoint now) {
  return apply(now, [&](Step& step) {
    reconciler_.connected(node, hello, step);
    if (const auto index = tables_.nodes.find(node)) parking_.connected(*index, step);
  });
}

Actions Cluster::node_disconnected(NodeId node, TimePoint now, bool was_announced) {
  return apply(now, [&](Step& step) { reconciler_.disconnected(node, was_announced, step); });
}

Actions Cluster::heartbeat(NodeId node, TimePoint now) {
  return apply(now, [&](Step& step) { reports_.heartbeat(node, step); });
}

Actions Cluster::relayed_heartbeats(const RelayedHeartbeats& relayed_heartbeats, TimePoint now) {
  return apply(now, [&](Step& step) { reports_.relayed_heartbeats(relayed_heartbeats, step); });
}

Result<Actions> Cluster::drain(NodeId node, std::string reason, TimePoint now) {
  const auto index = tables_.nodes.find(node);
  if (!index) return fail(Errc::NotFound, "no node {}", node);
  return apply(now, [&](Step& step) {
    tables_.nodes.drain(*index, std::move(reason), step);
    placer_.leave_node(*index);
  });
}

Result<Actions> Cluster::resume_node(NodeId node, TimePoint now) {
  const auto index = tables_.nodes.find(node);
  if (!index) return fail(Errc::NotFound, "no node {}", node);
  return apply(now, [&](Step& step) {
    if (tables_.nodes.resume(*index, step)) placer_.capacity_grew();
  });
}

Actions Cluster::set_partitions(std::vector<Partition> all, TimePoint now) {
  return apply(now, [&](Step&) {
    tables_.nodes.set_partitions(std::move(all));
    placer_.follow_partitions();
  });
}

Actions Cluster::set_topology(Topology topology, TimePoint now) {
  return apply(now, [&](Step&) {
    tables_.nodes.set_topology(std::move(topology));
    placer_.capacity_grew();
  });
}

Actions Cluster::set_licenses(const std::vector<base::License>& totals, bool release_suspended,
                              TimePoint now) {
  return apply(now, [&](Step&) { placer_.set_licenses(totals, release_suspended); });
}

std::map<std::string, std::uint32_t> Cluster::waiting_for_licenses() const {
  std::map<std::string, std::uint32_t> jobs;
  for (const auto& [key, job] : placer_.waiting()) {
    for (const base::License& wanted : job->request.licenses) ++jobs[wanted.name];
  }
  return jobs;
}

// ---- reservations -----------------------------------------------------------------------------

Actions Cluster::set_reservations(std::vector<Reservation> all, TimePoint now) {
  tables_.calendar.set(std::move(all), tables_.nodes);
  return apply(now, [](Step&) {});
}

std::vector<JobId> Cluster::conflicting_jobs(const Reservation& reservation, TimePoint now) const {
  std::vector<JobId> out;
  for (const auto& [id, job] : tables_.jobs.all()) {
    if (!job.placed || job.is_step() || job.outcome->ending()) continue;
    const bool is_there = std::any_of(reservation.nodes.begin(), reservation.nodes.end(),
                                      [&, &job = job](NodeId node) {
                                        const auto index = tables_.nodes.find(node);
                                        return index && job.member_on(*index);
                                      });
    if (!is_there) continue;
    const auto longest = longest_of(job.request, tables_.config.max_slots);
    const Duration ran = now - job.started.value_or(now);
    if (!longest || *longest - ran > reservation.start - now) out.push_back(id);
  }
  return out;
}

// The jobs that are still there ran longer than their time limits promised, or were there before
// the reservation was made.
void Cluster::leave_reserved_nodes(Step& step) {
  for (auto& [id, job] : tables_.jobs.all()) {
    if (!job.placed || job.is_step()) continue;
    Occupant occupant = placer_.occupant(job);
    occupant.bound = Duration::zero();
    for (const NodeIndex node : job.cells.nodes) {
      const Reservation* r = tables_.calendar.blocking(occupant, node);
      if (r == nullptr || !tables_.calendar.has_begun(*r)) continue;
      reach_limit(job,
                  fmt::format("reservation {} has begun on {}", r->name, tables_.nodes.name(node)),
                  step);
      break;
    }
  }
}

// ---- jobs -------------------------------------------------------------------------------------

Result<void> Cluster::check(const base::ResourceRequest& request) const {
  const auto shape = request.inside != JobId{0}
                         ? check_step(tables_.jobs, tables_.nodes, request)
                         : check_request(tables_.nodes, request, tables_.config.overcommit);
  if (!shape) return shape.error();
  return placer_.licenses().check(request);
}

Result<JobView> Cluster::plan(const base::ResourceRequest& request, UserId user) const {
  return plan_view(shown(), request, user);
}

Result<Actions> Cluster::submit(JobId job, UserId user, const base::ResourceRequest& request,
                                TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.submit(job, user, request, step); });
}

Actions Cluster::recover(const std::vector<RecoveredJob>& jobs, TimePoint now) {
  return apply(now, [&](Step& step) { recovery_.recover(jobs, step); });
}

Result<Actions> Cluster::cancel(JobId job, EndCause cause, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.cancel(job, cause, step); });
}

Result<Actions> Cluster::signal(JobId job, int signal, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.signal(job, signal, step); });
}

Result<void> Cluster::check(JobId job, JobRequest request, std::int64_t number) const {
  return requests_.check(job, request, number);
}

Result<Actions> Cluster::suspend(JobId job, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.suspend(job, step); });
}

Result<Actions> Cluster::resume(JobId job, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.resume(job, step); });
}

Result<Actions> Cluster::set_stopped(JobId job, bool is_stopped, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.set_stopped(job, is_stopped, step); });
}

Actions Cluster::confirm_deadlock(JobId job, std::uint32_t suspicion, bool is_deadlock,
                                  TimePoint now) {
  return apply(now, [&](Step& step) {
    const auto found = tables_.jobs.live(job);
    if (found) idle_.confirm(**found, suspicion, is_deadlock, step);
  });
}

Result<Actions> Cluster::hold(JobId job, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.hold(job, step); });
}

Result<Actions> Cluster::release(JobId job, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.release(job, step); });
}

Result<Actions> Cluster::set_weight(JobId job, std::uint32_t weight, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.set_weight(job, weight, step); });
}

Result<Actions> Cluster::set_priority(JobId job, std::int32_t priority, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.set_priority(job, priority, step); });
}

Result<void> Cluster::check_change(JobId job, const base::ResourceRequest& request,
                                   TimePoint now) const {
  return requests_.check_change(job, request, now);
}

Result<Actions> Cluster::change(JobId job, const base::ResourceRequest& request, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.change(job, request, step); });
}

Result<Actions> Cluster::requeue(JobId job, std::string reason, TimePoint now) {
  return try_apply(now,
                   [&](Step& step) { return requests_.requeue(job, std::move(reason), step); });
}

Result<Actions> Cluster::end_attempt(JobId job, TimePoint now) {
  return try_apply(now, [&](Step& step) { return requests_.end_attempt(job, step); });
}

Result<void> Cluster::set_keep_going(JobId job, bool keep_going) {
  const auto known = tables_.jobs.live(job);
  if (!known) return known.error();
  (*known)->keep_going = keep_going;
  return {};
}

Result<void> Cluster::let_end(JobId job) {
  const auto known = tables_.jobs.live(job);
  if (!known) return known.error();
  (*known)->is_stopping = true;
  return {};
}

Actions Cluster::node_says(NodeId node, const base::NodeToHead& message, TimePoint now) {
  if (const auto* hello = std::get_if<base::NodeHello>(&message)) {
    return node_connected(node, *hello, now);
  }
  return apply(now, [&](Step& step) { reports_.received(node, message, step); });
}

// ---- control ----------------------------------------------------------------------------------

Result<void> Cluster::check(Setting setting, base::SettingValue value) const {
  if (auto valid = base::check_setting(base::rule_of(setting), value); !valid) return valid;
  if (setting != Setting::Fill || value == 0 || tables_.config.can_fill) return {};
  return fail(Errc::Unsupported,
              "jobs cannot fill with switch_mode = \"barrier\"; set switch_mode = \"clock\"");
}

Result<Actions> Cluster::set(Setting setting, base::SettingValue value, TimePoint now) {
  if (auto possible = check(setting, value); !possible) return possible.error();
  return apply(now, [&](Step&) {
    const base::SettingValue before = setting_of(tables_.config, setting);
    set_setting(tables_.config, setting, value);
    switch (setting) {
      case Setting::Quantum:
      case Setting::IdleDetection:
      case Setting::Fill:
        if (value != before) tables_.jobs.mark_changed();
        break;
      case Setting::Slots:
      case Setting::UrgentSlots:
        if (value > before) placer_.capacity_grew();
        break;
      case Setting::Young:
        if (value != before) judge_ages(now);
        break;
      case Setting::MaxRequeues:
      case Setting::Overcommit:
        break;
    }
  });
}

Actions Cluster::set_fill_queues(std::vector<base::Queue> queues, TimePoint now) {
  return apply(now, [&](Step&) {
    if (tables_.config.fill_queues != queues) tables_.jobs.mark_changed();
    tables_.config.fill_queues = std::move(queues);
  });
}

Actions Cluster::set_shares_channel(JobId id, bool shares, TimePoint now) {
  return apply(now, [&](Step&) {
    Job* job = tables_.jobs.find(id);
    if (job == nullptr || job->shares_channel == shares) return;
    job->shares_channel = shares;
    if (tables_.config.fill) tables_.jobs.mark_changed();
  });
}

void Cluster::forget(JobId job) {
  tables_.jobs.forget(job);
}

// ---- time -------------------------------------------------------------------------------------

Actions Cluster::tick(TimePoint now) {
  return apply(now, [&](Step& step) {
    reconciler_.advance(step);
    while (const auto due = tables_.deadlines.take_due(now)) {
      Job* job = tables_.jobs.find(due->job);
      if (job == nullptr) continue;
      if (is_for_answers(due->kind) && now - due->at > kOwnStall) {
        tables_.deadlines.set(job->id, due->kind, now + kOwnStall);
      } else {
        deadline_due(*job, due->kind, step);
      }
    }
  });
}

void Cluster::deadline_due(Job& job, DeadlineKind kind, Step& step) {
  switch (kind) {
    case DeadlineKind::Launch:
      return launching_.launch_overdue(job, step);
    case DeadlineKind::Begin:
      return launching_.begin_overdue(job, step);
    case DeadlineKind::Kill:
      return reconciler_.kill_overdue(job, step);
    case DeadlineKind::Wall:
      return reach_limit(
          job, fmt::format("wall-time limit {} reached", seconds(job.request.wall_limit)), step);
    case DeadlineKind::Scheduled:
      return watch_scheduled_limit(job, step);
    case DeadlineKind::Age:
      return watch_age(job, step);
    case DeadlineKind::Signal:
      return watch_signal(job, step);
    case DeadlineKind::Idle:
      return idle_.judge(job, step);
    case DeadlineKind::Switches:
      job.is_near = false;
      return placer_.capacity_grew();
    case DeadlineKind::Relaunch:
      return ending_.pause_over(job);
  }
}

// Returns when the job can have been scheduled for so much more, at the earliest. While more than a
// cycle is missing, its share may still grow, so the bound assumes full use of the time.
TimePoint Cluster::earliest(const Job& job, Duration more, TimePoint now) const {
  const CycleClock& cycles = publisher_.cycles();
  const bool is_near = more <= cycles.newest().length();
  return now + (is_near ? job.time->time_to_run(more, now, cycles) : more);
}

// Both checks are repeated until the time is reached. A job that is in no row is checked when it is
// in one again.
void Cluster::watch_age(Job& job, Step& step) {
  if (!job.is_young || job.state != JobState::Running) return;
  const Duration missing = tables_.config.young_time - publisher_.scheduled(job, step.now);
  if (missing > Duration::zero()) {
    return tables_.deadlines.set(job.id, DeadlineKind::Age, earliest(job, missing, step.now));
  }
  job.is_young = false;
  tables_.jobs.mark_changed();
}

void Cluster::judge_ages(TimePoint now) {
  for (const JobId id : tables_.jobs.managed()) {
    Job& job = tables_.jobs.at(id);
    job.is_young = job.has_row() && publisher_.scheduled(job, now) < tables_.config.young_time;
    if (job.is_young) tables_.deadlines.set(id, DeadlineKind::Age, now);
  }
  tables_.jobs.mark_changed();
}

void Cluster::watch_scheduled_limit(Job& job, Step& step) {
  if (job.request.scheduled_limit <= Duration::zero() || job.state != JobState::Running) return;
  const Duration missing = job.request.scheduled_limit - publisher_.scheduled(job, step.now);
  if (missing <= Duration::zero()) {
    return reach_limit(
        job, fmt::format("time limit {} reached", seconds(job.request.scheduled_limit)), step);
  }
  tables_.deadlines.set(job.id, DeadlineKind::Scheduled, earliest(job, missing, step.now));
}

// The limit that comes first counts. The signal waits until every task exists; a task that is
// frozen receives it in its next slice.
void Cluster::watch_signal(Job& job, Step& step) {
  const base::ResourceRequest& r = job.request;
  const bool runs = job.state == JobState::Running || job.state == JobState::Suspended;
  if (r.limit_signal == 0 || job.is_warned || !runs || !job.limit.empty()) return;
  if (!job.members->not_begun().empty()) return;  // set again when they have begun
  std::optional<TimePoint> next;
  if (r.wall_limit > Duration::zero()) {
    next = job.started.value_or(step.now) + r.wall_limit - r.limit_signal_before;
  }
  if (r.scheduled_limit > Duration::zero() && job.state == JobState::Running) {
    const Duration missing =
        r.scheduled_limit - r.limit_signal_before - publisher_.scheduled(job, step.now);
    const TimePoint at = missing > Duration::zero() ? earliest(job, missing, step.now) : step.now;
    next = std::min(next.value_or(at), at);
  }
  if (next && *next > step.now) {
    tables_.deadlines.set(job.id, DeadlineKind::Signal, *next);
  } else if (next) {
    requests_.warn(job, step);
  }
}

// Only the first limit that a job reaches is reported. A job that returns to the queue gets new
// time.
void Cluster::reach_limit(Job& job, std::string reason, Step& step) {
  if (job.outcome->ending() || !job.limit.empty() || job.is_requeued) return;
  job.limit = std::move(reason);
  step.job_changed(job.id);
}

std::optional<TimePoint> Cluster::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto time :
       {tables_.nodes.next_deadline(), tables_.deadlines.next(), publisher_.next_time(),
        tables_.calendar.next_change(), parking_.next_time()}) {
    if (time) next = next ? std::min(*next, *time) : *time;
  }
  if (is_calendar_new_) next = tables_.calendar.now();
  return next;
}

// ---- views ------------------------------------------------------------------------------------

Result<JobView> Cluster::job(JobId job, TimePoint now) const {
  const Job* known = tables_.jobs.find(job);
  if (known == nullptr) return fail(Errc::NotFound, "no job {}", job);
  return view_of(shown(), *known, now);
}

std::optional<TimePoint> Cluster::expected_start(JobId job) const {
  const Job* known = tables_.jobs.find(job);
  if (known == nullptr || known->state != JobState::Pending) return std::nullopt;
  return gang::expected_start(tables_, placer_, publisher_, *known);
}

std::string Cluster::share_reason(JobId job) const {
  const Job* known = tables_.jobs.find(job);
  return known == nullptr ? std::string()
                          : gang::share_reason(tables_, placer_, publisher_, *known);
}

std::vector<JobId> Cluster::jobs() const {
  std::vector<JobId> out;
  for (const auto& [id, job] : tables_.jobs.all()) out.push_back(id);
  return out;
}

Result<NodeView> Cluster::node(NodeId node) const {
  const auto index = tables_.nodes.find(node);
  if (!index) return fail(Errc::NotFound, "no node {}", node);
  return view_of(shown(), *index);
}

std::vector<NodeId> Cluster::nodes() const {
  return tables_.nodes.ids();
}

MatrixView Cluster::matrix() const {
  return matrix_view(shown());
}

const ClusterCounters& Cluster::counters() const {
  return tables_.counters;
}

const ClusterConfig& Cluster::config() const {
  return tables_.config;
}

Result<void> Cluster::check_invariants(TimePoint now) const {
  if (auto r = tables_.jobs.check(); !r) return r;
  if (auto r = placer_.check(); !r) return r;
  for (const auto& [id, job] : tables_.jobs.all()) {
    if (publisher_.scheduled(job, now) < Duration::zero()) {
      return fail(Errc::WrongState, "job {} was scheduled for a negative time", id);
    }
  }
  return publisher_.check();
}

}  // namespace score::gang
