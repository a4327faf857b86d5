// This file checks the invariants, which must hold after every event.
#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::sim {

namespace {

constexpr Duration kSwitchLateness = 200us;
constexpr Duration kSlack = 60us;  // replan_above on both nodes, and rounding

bool may_run(const SimNode::Shepherd& s) {
  return s.phase == base::AttemptPhase::Running && !s.frozen && !s.killed && !s.background &&
         !s.placed.cores.empty();
}

// Returns true if the job has no time limit, or a long one.
bool holds_rows(const base::ResourceRequest& request, Duration long_limit) {
  bool is_short = false;
  for (const Duration limit : {request.scheduled_limit, request.wall_limit}) {
    is_short |= limit > 0s && limit <= long_limit;
  }
  return !is_short && request.queue != base::Queue::Exclusive;
}

}  // namespace

void World::broken(const std::string& what) const {
  throw Broken(fmt::format("seed {} nodes {} event {} time {}: {}", options_.seed, options_.nodes,
                           seen_.events, base::format_duration(events_.now().time_since_epoch()),
                           what));
}

void World::check_event() {
  ++seen_.events;
  // The check recomputes everything, so with thousands of nodes it runs only at times.
  const std::uint64_t rarely = sites_.size() <= 64 ? 1 : sites_.size();
  if (head_ && seen_.events % rarely == 0) {
    const auto sane = head_->check_invariants(head_now());
    if (!sane) broken(sane.error().context());
  }
  if (head_ && seen_.events % rarely == 0 && !reserved_.empty()) check_reserved();
  for (const std::size_t site : std::exchange(changed_, {})) check_node(site);
}

// A reserved node has no job that may not use it, except one that is being ended because the
// reservation has begun.
void World::check_reserved() {
  const TimePoint now = events_.now();
  for (const Reserved& r : reserved_) {
    // The head does this check when its timer is due, a little late.
    if (now < r.start + 1ms || now >= r.end) continue;
    for (const base::NodeId node : r.reservation.nodes) {
      const auto shown = head_->node(node);
      for (const JobId id : shown->jobs) {
        const auto view = head_->job(id, head_now());
        if (!view) continue;
        ++seen_.reserved_compared;
        const bool may_stay = view->request.reservation == r.reservation.name &&
                              r.reservation.users.contains(view->user);
        const bool leaves = view->ending || !view->limit.empty();
        if (!may_stay && !leaves) {
          broken(fmt::format("job {} is on node {}, which reservation {} has", id, node,
                             r.reservation.name));
        }
      }
    }
  }
}

// Checks that at every instant at most one gang runs on a core.
void World::check_node(std::size_t index) {
  const SimNode& node = *sites_[index].node;
  std::vector<base::AttemptId> on_core(node.info().cores);
  for (const auto& [id, s] : node.shepherds()) {
    if (may_run(s) && !node.without_plan()) {
      for (const std::uint32_t core : s.placed.cores) {
        ++seen_.cores_compared;
        if (on_core[core] != base::AttemptId{0}) {
          broken(fmt::format("attempts {} and {} run on core {} of node {}", on_core[core], id,
                             core, index));
        }
        on_core[core] = id;
      }
    }
    check_gang(id, node.id());
  }
  check_units(index);
  check_scratch(index);
}

// Checks that the attempts of a node do not use more scratch than it has.
void World::check_scratch(std::size_t index) const {
  const SimNode& node = *sites_[index].node;
  base::Bytes sum{0};
  for (const auto& [id, s] : node.shepherds()) {
    if (s.phase == base::AttemptPhase::Running && !s.killed) sum += s.placed.scratch;
  }
  if (sum > node.info().scratch) broken(fmt::format("scratch of node {} is overcommitted", index));
}

// A unit of "gpu" has at most one running attempt. Of the attempts that share a unit of "part", one
// runs at a time.
void World::check_units(std::size_t index) {
  const SimNode& node = *sites_[index].node;
  if (node.without_plan()) return;
  std::map<std::pair<std::string, std::uint32_t>, base::AttemptId> taken;
  for (const auto& [id, s] : node.shepherds()) {
    if (s.phase != base::AttemptPhase::Running || s.killed) continue;
    for (const base::GenericShare& share : s.placed.generic) {
      if (share.name == "part" && !may_run(s)) continue;
      for (const std::uint32_t unit : share.indices) {
        ++seen_.units_compared;
        const auto [other, is_first] = taken.emplace(std::pair(share.name, unit), id);
        if (!is_first) {
          broken(fmt::format("attempts {} and {} use {} {} of node {}", other->second, id,
                             share.name, unit, index));
        }
      }
    }
  }
}

namespace {

// In a gang of thousands only some nodes are compared, because the cost is quadratic.
constexpr std::size_t kWitnesses = 64;

std::vector<base::NodeId> witnesses_of(const std::vector<base::NodeId>& nodes) {
  if (nodes.size() <= 2 * kWitnesses) return nodes;
  std::vector<base::NodeId> some;
  for (std::size_t i = 0; i < kWitnesses; ++i) some.push_back(nodes[i * nodes.size() / kWitnesses]);
  return some;
}

}  // namespace

// Checks that the ranks of a gang run at the same time on all nodes, within the limits of clocks
// and switchers. The check applies only while all its nodes have followed timely plans over links
// that held.
void World::check_gang(base::AttemptId attempt, base::NodeId changed) {
  if (options_.barriers) return;  // they start when MetAll arrives
  const auto job = disk_.find(base::job_of(attempt));
  if (job == disk_.end() || job->second.view.attempt != attempt) return;
  const std::vector<base::NodeId> nodes = witnesses_of(job->second.view.nodes);
  if (!std::binary_search(nodes.begin(), nodes.end(), changed)) return;
  std::size_t thawed = 0;
  Duration error{0};
  TimePoint orderly{};
  for (const base::NodeId id : nodes) {
    const SimNode& node = *sites_[id.value()].node;
    const auto found = node.shepherds().find(attempt);
    const auto since = node.orderly_since();
    if (!since || node.has_plan_ahead() || !sites_[id.value()].link->is_up() ||
        found == node.shepherds().end() || found->second.killed ||
        found->second.placed.cores.empty() || found->second.background) {
      uneven_.erase(attempt);
      return;
    }
    thawed += found->second.frozen ? 0 : 1;
    orderly = std::max({orderly, *since, sites_[id.value()].link->late_until()});
    error = std::max(error, std::chrono::abs(node.clock_error(head_now())));
  }
  if (thawed != 0 && thawed != nodes.size()) {
    Uneven& uneven = uneven_.try_emplace(attempt, Uneven{events_.now()}).first->second;
    uneven.error = std::max(uneven.error, error);
    if (events_.now() - uneven.since > 1s && orderly < uneven.since) {
      broken(fmt::format("job {} runs on some of its nodes only", job->first));
    }
    return;
  }
  const auto uneven = uneven_.find(attempt);
  if (uneven == uneven_.end()) return;
  const TimePoint since = uneven->second.since;
  error = std::max(error, uneven->second.error);
  uneven_.erase(uneven);
  if (orderly >= since - 1ms || error > 1ms)
    return;  // a plan began just then and may have arrived late at a node
  ++seen_.gangs_compared;
  const Duration skew = events_.now() - since;
  seen_.worst_gang_skew = std::max(seen_.worst_gang_skew, skew);
  if (skew > kSwitchLateness + 2 * error + kSlack) {
    broken(fmt::format("job {} was switched {} apart, clocks are {} apart", job->first,
                       base::format_duration(skew), base::format_duration(error)));
  }
}

void World::check_clock(std::size_t index) {
  const SimNode& node = *sites_[index].node;
  if (!node.daemon_runs() || !head_ || !sites_[index].link->is_up()) return;
  if (!node.agent().clock().synchronised()) return;
  ++seen_.clocks_compared;
  const Duration error = std::chrono::abs(node.clock_error(head_now()));
  // The clock of a rebooted head is a new one until the first exchange.
  if (!node.orderly_since()) return;
  if (error > node.agent().clock().error_bound(node.local()) + 1us) {
    broken(fmt::format("clock of node {} is {} off, bound {}", index, base::format_duration(error),
                       base::format_duration(node.agent().clock().error_bound(node.local()))));
  }
}

void World::count_idle() {
  const gang::ClusterCounters& counters = head_->counters();
  seen_.idle_left += counters.idle_left;
  seen_.idle_returned += counters.idle_returned;
  seen_.early_yields += counters.early_yields;
}

// A job that works must be in the timetable. A job that sleeps long must leave it, within some
// cycles, if a different job wants its cores. Used without faults.
void World::check_idle(JobId job) {
  const auto view = head_->job(job, head_now());
  if (!view || view->state != JobState::Running || view->request.overlay) return;
  bool works = false;
  bool sleeps = true;
  for (const base::NodeId id : view->nodes) {
    const auto& shepherds = sites_[id.value()].node->shepherds();
    const auto found = shepherds.find(view->attempt);
    const bool asleep = found != shepherds.end() && found->second.asleep_until > events_.now();
    works |= found != shepherds.end() && !found->second.left.empty() && !asleep;
    sleeps &= asleep;
  }
  const auto lasts = [this](auto& since, JobId id, bool holds) {
    if (!holds) since.erase(id);
    return holds ? events_.now() - since.emplace(id, events_.now()).first->second : Duration{0};
  };
  ++seen_.idle_compared;
  if (lasts(kept_out_since_, job, works && view->background) > 5s) {
    broken(fmt::format("job {} works and is kept out of the timetable", job));
  }
  const bool lingers = sleeps && view->activity == gang::JobActivity::Busy && view->share > 0;
  if (lasts(lingers_since_, job, lingers) > 40s) {
    broken(fmt::format("job {} sleeps in its slices", job));
  }
}

// A placed job must begin on all its nodes or end with a reason, within the time that answers may
// take, and at once if none of its nodes hangs. Used without faults.
void World::check_launch(JobId job) {
  const auto view = head_->job(job, head_now());
  if (!view) return;
  const auto lasts = [this](auto& since, JobId id, bool holds) {
    if (!holds) since.erase(id);
    return holds ? events_.now() - since.emplace(id, events_.now()).first->second : Duration{0};
  };
  const Duration limit = head_->config().launch_deadline + 1s;
  ++seen_.launches_compared;
  if (lasts(launching_since_, job, view->state == JobState::Launching) > limit) {
    broken(fmt::format("job {} is being launched for ever", job));
  }
  bool has_begun = true;
  bool hangs = false;
  for (const base::NodeId id : view->nodes) {
    const auto& shepherds = sites_[id.value()].node->shepherds();
    const auto found = shepherds.find(view->attempt);
    if (found == shepherds.end()) continue;
    has_begun &= found->second.phase >= base::AttemptPhase::Running;
    hangs |= found->second.phase == base::AttemptPhase::Running && !found->second.begun;
  }
  const bool runs = view->state == JobState::Running;
  if (lasts(not_begun_since_, job, runs && !has_begun) > 2s) {
    broken(fmt::format("job {} runs and has not begun on all its nodes", job));
  }
  if (!runs || !hangs) {
    hangs_from_.erase(job);
    return;
  }
  // A job that lost its node or head was launched again, so the time counts from the first check.
  const Duration from = hangs_from_.emplace(job, view->scheduled).first->second;
  if (view->scheduled - from > limit + quantum_ * slots_) {
    broken(fmt::format("job {} hangs on one of its nodes and goes on", job));
  }
}

namespace {

bool share_a_core(const gang::JobView& a, const gang::JobView& b) {
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const auto other = std::find(b.nodes.begin(), b.nodes.end(), a.nodes[i]);
    if (other == b.nodes.end()) continue;
    const auto& cores = b.cores[static_cast<std::size_t>(other - b.nodes.begin())];
    for (const std::uint32_t core : a.cores[i]) {
      if (std::binary_search(cores.begin(), cores.end(), core)) return true;
    }
  }
  return false;
}

bool is_of_high(const gang::JobView& view) {
  return view.request.queue == base::Queue::High || view.request.queue == base::Queue::Urgent;
}

bool is_busy_high(const gang::JobView& view, bool idle_detection) {
  return view.state == JobState::Running && !view.request.overlay && is_of_high(view) &&
         (!idle_detection || view.activity == gang::JobActivity::Busy);
}

}  // namespace

// No job of the other queues may have slices on the cores of a busy job of queue high or urgent.
// The check allows some slices of delay, and is used without faults.
void World::check_high(JobId job) {
  const auto view = head_->job(job, head_now());
  if (!view || is_of_high(*view) || view->request.overlay) return;
  bool is_beside = false;
  for (const JobId other : head_->jobs()) {
    const auto high = head_->job(other, head_now());
    is_beside |= high && is_busy_high(*high, head_->config().idle_detection) &&
                 view->state == JobState::Running && share_a_core(*view, *high);
  }
  seen_.high_compared += is_beside ? 1 : 0;
  if (!is_beside || view->share == 0) {
    not_displaced_since_.erase(job);
    return;
  }
  const TimePoint since = not_displaced_since_.emplace(job, events_.now()).first->second;
  if (events_.now() - since > 1s) {
    broken(fmt::format("job {} has slices on the cores of a busy job of queue high", job));
  }
}

// Checks a job that was just placed: only urgent jobs may be in the rows above the slots.
void World::check_placed(const gang::JobView& before, const gang::JobView& view) {
  if (view.state != JobState::Launching || view.attempt == before.attempt || !view.slot) return;
  const std::uint32_t slots = head_->config().max_slots;
  const bool is_urgent = view.request.queue == base::Queue::Urgent;
  const std::uint32_t most = slots + (is_urgent ? head_->config().urgent_slots : 0);
  seen_.urgent_beyond += is_urgent && view.slot->value() >= slots ? 1 : 0;
  check_kept_row(view);
  if (view.slot->value() < most) return;
  broken(fmt::format("job {} was placed in slot {} of {}", view.id, view.slot->value(), most));
}

// Checks the rule of gang::Hold, computed independently from the jobs. Rows that were held when the
// number of slots decreased, or that jobs of queue high hold, are not the placed job's fault.
void World::check_kept_row(const gang::JobView& placed) {
  const gang::ClusterConfig& config = head_->config();
  const bool keeps = config.placement <= gang::Placement::Dqt && config.max_slots > 4;
  const auto holds = [&](const gang::JobView& view) {
    return view.slot && view.slot->value() < config.max_slots &&
           holds_rows(view.request, config.long_limit);
  };
  if (!keeps || placed.request.queue != base::Queue::Normal || !holds(placed)) return;
  std::map<std::uint32_t, int> holders;
  for (const JobId id : head_->jobs()) {
    const auto view = head_->job(id, head_now());
    if (view && holds(*view)) ++holders[view->slot->value()];
  }
  if (holders[placed.slot->value()] > 1) return;  // it joined a row that was held already
  ++seen_.kept_rows_compared;
  if (holders.size() < config.max_slots) return;
  broken(fmt::format("job {} took the last row from short jobs", placed.id));
}

std::string World::describe(base::NodeId id, base::AttemptId attempt) const {
  const auto& shepherds = sites_[id.value()].node->shepherds();
  const auto found = shepherds.find(attempt);
  if (found == shepherds.end()) return fmt::format(" [{} has none]", id);
  const SimNode::Shepherd& s = found->second;
  return fmt::format(" [{}: phase {} tasks {} frozen {} background {} held {} idle {} asleep {}]",
                     id, int(s.phase), s.left.size(), s.frozen, s.background, s.held,
                     s.meter.is_idle(), s.asleep_until > events_.now());
}

void World::check_healed() {
  for (const auto& [id, stored] : disk_) {
    const auto view = head_->job(id, head_now());
    const JobState state = view ? view->state : stored.view.state;
    if (!base::is_final(state)) {
      std::string why;
      for (const std::string& reason : view->reasons) why += reason + "; ";
      for (const base::NodeId node : view->nodes) why += describe(node, view->attempt);
      broken(fmt::format("job {} has not ended: state {} activity {} {}", id, int(state),
                         int(view->activity), why));
    }
    if (state != stored.view.state) broken(fmt::format("the disk is wrong about job {}", id));
  }
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const SimNode& node = *sites_[i].node;
    if (!node.agent().attempts().empty() || !node.shepherds().empty() || node.ended_count() != 0) {
      broken(fmt::format("node {} still has an attempt", i));
    }
    const auto view = head_->node(base::NodeId{static_cast<std::uint32_t>(i)});
    if (view->state != gang::NodeState::Up || !view->jobs.empty() ||
        view->memory_reserved != base::Bytes{0} || view->scratch_reserved != base::Bytes{0}) {
      broken(fmt::format("the head is wrong about node {}: state {}", i, int(view->state)));
    }
  }
  count_idle();
  for (const Site& site : sites_) {
    seen_.met += site.node->met();
    seen_.unmet += site.node->unmet();
    seen_.lost_reports += site.node->lost_reports();
    seen_.fake_wakes += site.node->fake_wakes();
  }
  seen_.epochs += head_->counters().epochs;
  seen_.stale_reports += head_->counters().stale_reports;
  seen_.late_timetables += head_->counters().late_epochs;
}

}  // namespace score::sim
