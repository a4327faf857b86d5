#include "tests/sim/sim_node.hpp"

#include <algorithm>
#include <numeric>

namespace score::sim {

namespace {

constexpr int kKill = 9;
constexpr Duration kSwitchLateness = 200us;
constexpr Duration kCheckInterval = 50ms;
constexpr Duration kForEver = 100h;
constexpr Duration kMeetLimit = 200ms;
constexpr Duration kNoticeable = 500us;  // smallest correction of the clock that counts

std::uint32_t first_rank(const base::PlacedTasks& placed) {
  return std::accumulate(placed.tasks_on_node.begin(),
                         placed.tasks_on_node.begin() + placed.node_index, 0U);
}

}  // namespace

SimNode::SimNode(NodeId id, base::NodeInfo info, World world)
    : id_(id), info_(std::move(info)), world_(std::move(world)) {
  power_on();
}

// ---- clock ------------------------------------------------------------------------------------

TimePoint SimNode::to_local(TimePoint t) const {
  const Duration since = t.time_since_epoch();
  return TimePoint{
      since + offset_ +
      Duration{static_cast<std::int64_t>(static_cast<double>(since.count()) * drift_)}};
}

TimePoint SimNode::from_local(TimePoint t) const {
  const auto since = static_cast<double>((t.time_since_epoch() - offset_).count());
  return TimePoint{Duration{static_cast<std::int64_t>(since / (1 + drift_))} + 1ns};
}

void SimNode::after(Duration d, std::function<void(SimNode&)> what) {
  world_.events.after(d, [this, boot = boot_, what = std::move(what)] {
    if (boot == boot_) what(*this);
  });
}

// ---- life of the machine ----------------------------------------------------------------------

void SimNode::power_on() {
  offset_ = world_.chance.between(0ns, 1000s);
  drift_ = (static_cast<double>(world_.chance.below(101)) - 50) * 1e-6;
  restart_daemon();
}

void SimNode::crash() {
  ++boot_;
  shepherds_.clear();
  ended_.clear();
  stop_daemon();
}

void SimNode::stop_daemon() {
  ++daemon_;
  ++plan_number_;
  agent_.reset();
  current_.reset();
  ahead_.reset();
  connected_ = false;
  for (auto& [id, shepherd] : shepherds_) {
    shepherd.background = shepherd.held = shepherd.has_turn = false;
    shepherd.waits_for.reset();
    ++shepherd.watch;
    set_frozen(shepherd, false);
  }
  world_.state_changed(id_);
}

void SimNode::restart_daemon() {
  agent_.emplace(gang::NodeAgentConfig{info_});
  trouble_ended_ = world_.events.now();
  shepherds_.merge(ended_);
  const auto found = shepherds_;  // a copy, because the agent may retire or remove some
  for (const auto& [id, s] : found) {
    if (s.phase != base::AttemptPhase::Running) {
      set_frozen(shepherds_.at(id), !s.placed.cores.empty());  // as at its start
    }
    carry_out(agent_->adopt(s.placed, {id, s.phase, s.exits, {}}, s.begun, local()));
  }
}

void SimNode::on_connected() {
  connected_ = true;
  first_epoch_ = base::Epoch{UINT64_MAX};
  trouble_ended_ = world_.events.now();
  carry_out(agent_->on_connected(local()));
  heartbeat();
}

void SimNode::on_disconnected() {
  connected_ = false;
  for (auto& [id, shepherd] : shepherds_) {
    if (shepherd.waits_for) go_alone(shepherd);
  }
  if (agent_) carry_out(agent_->on_disconnected(local()));
}

void SimNode::heartbeat() {
  if (!agent_ || !connected_) return;
  world_.send(Ping{local()});
  judge_unswitched();
  const gang::NodeActions repeated = agent_->repeat_activities(local());
  if (!repeated.empty())
    carry_out(repeated);  // otherwise nothing has changed, so nothing must be checked
}

std::optional<TimePoint> SimNode::orderly_since() const {
  if (!connected_ || !current_ || !agent_ || misled_ || current_->epoch < first_epoch_)
    return std::nullopt;
  return std::max(from_local(current_->start), trouble_ended_);
}

void SimNode::receive(const Downward& message) {
  if (!agent_) return;
  if (const auto* pong = std::get_if<Pong>(&message)) {
    gang::ClockSample sample = pong->sample;
    sample.node_received = local();
    return carry_out(agent_->on_clock(sample, local()));
  }
  carry_out(agent_->on_head(std::get<base::HeadToNode>(message), local()));
}

// ---- actions ----------------------------------------------------------------------------------

void SimNode::carry_out(const gang::NodeActions& actions) {
  for (const gang::NodeAction& action : actions) {
    if (const auto* l = std::get_if<gang::LaunchShepherd>(&action)) {
      launch(*l);
    } else if (const auto* s = std::get_if<gang::StartShepherd>(&action)) {
      after(world_.chance.between(50us, 3ms), [id = s->attempt](SimNode& n) { n.start(id); });
    } else if (const auto* k = std::get_if<gang::KillAttempt>(&action)) {
      kill(k->attempt);
    } else if (const auto* d = std::get_if<gang::RetireAttempt>(&action)) {
      auto ended = shepherds_.extract(d->attempt);
      ended.mapped().phase = base::AttemptPhase::Exited;
      ended_.insert(std::move(ended));
    } else if (const auto* r = std::get_if<gang::RemoveAttempt>(&action)) {
      shepherds_.erase(r->attempt);
      ended_.erase(r->attempt);
    } else if (const auto* f = std::get_if<gang::FollowPlan>(&action)) {
      follow(f->plan);
    } else if (const auto* e = std::get_if<gang::EndMeeting>(&action)) {
      end_meeting(e->met);
    } else if (const auto* m = std::get_if<gang::SendToHead>(&action)) {
      // Reports of this kind may be lost, because they are repeated as long as they matter.
      const bool is_activity = std::holds_alternative<base::ActivityChanged>(m->message);
      const bool is_lost = is_activity && world_.chance.one_in(20 * world_.rarity);
      if (is_lost) ++lost_reports_;
      if (!is_lost) world_.send(m->message);
    }
  }
  world_.state_changed(id_);
}

void SimNode::report(AttemptId id, const gang::ShepherdEvent& event) {
  if (agent_) carry_out(agent_->on_shepherd(id, event, local()));
}

void SimNode::launch(const gang::LaunchShepherd& order) {
  const AttemptId id = order.placed.attempt;
  Shepherd& shepherd = shepherds_[id];
  shepherd = Shepherd{};
  shepherd.placed = order.placed;
  shepherd.frozen = !order.placed.cores.empty();
  const Behaviour behaviour = world_.behaviour(id);
  const bool refuses = behaviour.refusing_node == order.placed.node_index;
  after(world_.chance.between(200us, 5ms), [id, refuses](SimNode& n) { n.check(id, refuses); });
}

// The shepherd's checks are done. If the daemon is down, it waits for the daemon.
void SimNode::check(AttemptId id, bool refuses) {
  const auto found = shepherds_.find(id);
  if (found == shepherds_.end() || found->second.phase != base::AttemptPhase::Preparing ||
      found->second.killed) {
    return;
  }
  if (!agent_) {
    return after(20ms, [id, refuses](SimNode& n) { n.check(id, refuses); });
  }
  if (world_.chance.one_in(3000 * world_.rarity)) return report(id, gang::ShepherdGone{});
  if (refuses) return report(id, gang::ShepherdRefused{127, "./a.out: No such file"});
  found->second.phase = base::AttemptPhase::Prepared;
  report(id, gang::ShepherdReady{});
}

void SimNode::start(AttemptId id) {
  const auto found = shepherds_.find(id);
  if (found == shepherds_.end() || found->second.phase != base::AttemptPhase::Prepared ||
      found->second.killed) {
    return;
  }
  found->second.phase = base::AttemptPhase::Running;
  if (world_.behaviour(id).hanging_node != found->second.placed.node_index) begin(id);
}

void SimNode::begin(AttemptId id) {
  Shepherd& s = shepherds_.at(id);
  s.begun = true;
  const Behaviour behaviour = world_.behaviour(id);
  const std::uint32_t first = first_rank(s.placed);
  for (std::uint32_t i = 0; i < s.placed.tasks_on_node[s.placed.node_index]; ++i) {
    s.left[base::Rank{first + i}] = behaviour.work + world_.chance.between(0ns, 20ms);
  }
  s.counted = world_.events.now();
  s.looked = s.counted;
  s.next_nap = behaviour.nap_after;
  report(id, gang::ShepherdStarted{});
  work_on(id);
}

void SimNode::kill(AttemptId id) {
  const auto found = shepherds_.find(id);
  if (found == shepherds_.end() || found->second.killed) return;
  found->second.killed = true;
  const Duration delay = world_.chance.one_in(500 * world_.rarity)
                             ? 8s
                             : world_.chance.between(100us, 2ms);  // some take long to die
  after(delay, [id](SimNode& n) {
    const auto dying = n.shepherds_.find(id);
    if (dying == n.shepherds_.end()) return;
    const auto left = std::exchange(dying->second.left, {});
    for (const auto& [rank, work] : left) {
      dying->second.exits.push_back({rank, 0, kKill});
      n.report(id, gang::ShepherdTaskExited{{rank, 0, kKill}});
    }
    if (n.agent_) {
      n.report(id, gang::ShepherdDone{});
    } else {
      n.shepherds_.at(id).phase = base::AttemptPhase::Exited;
    }
  });
}

// ---- tasks ------------------------------------------------------------------------------------

// Plans the next event if the attempt continues undisturbed: the end of a task, or a nap.
void SimNode::work_on(AttemptId id) {
  Shepherd& s = shepherds_.at(id);
  if (s.frozen || s.killed || s.left.empty() || s.phase != base::AttemptPhase::Running) return;
  count_work(s);
  const TimePoint now = world_.events.now();
  const auto first = std::min_element(s.left.begin(), s.left.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  const Duration asleep = std::max(s.asleep_until - now, Duration{0});
  const bool naps = s.next_nap > Duration{0} && s.next_nap - s.used < first->second;
  const Duration work = naps ? s.next_nap - s.used : first->second;
  after(asleep + std::max(work, Duration{0}),
        [id, naps, turn = ++s.turn, rank = first->first](SimNode& n) {
          const auto found = n.shepherds_.find(id);
          if (found == n.shepherds_.end() || found->second.turn != turn) return;
          naps ? n.sleep(id) : n.task_ends(id, rank);
        });
}

void SimNode::count_work(Shepherd& s) {
  const TimePoint now = world_.events.now();
  const bool works = !s.frozen && s.phase == base::AttemptPhase::Running;
  const Duration worked = now - std::max(s.counted, s.asleep_until);
  s.counted = now;
  if (!works || worked <= Duration{0}) return;
  s.used += worked;
  for (auto& [rank, left] : s.left) left = std::max(left - worked, Duration{0});
}

void SimNode::sleep(AttemptId id) {
  Shepherd& s = shepherds_.at(id);
  count_work(s);
  const Behaviour behaviour = world_.behaviour(id);
  s.asleep_until = world_.events.now() + (behaviour.deadlocks ? kForEver : behaviour.nap);
  s.next_nap = s.used + behaviour.nap_after;
  work_on(id);
}

void SimNode::task_ends(AttemptId id, base::Rank rank) {
  const Behaviour behaviour = world_.behaviour(id);
  {
    Shepherd& s = shepherds_.at(id);
    s.left.erase(rank);
    base::TaskExit exit{rank, 0, 0};
    const bool fails = rank.value() == behaviour.failing_rank;
    if (fails && behaviour.aborts && !std::exchange(s.aborted, true)) {
      report(id, gang::ShepherdAbort{rank, 5, "aborted"});
    }
    if (fails) exit = {rank, behaviour.signal != 0 ? 0 : behaviour.code, behaviour.signal};
    s.exits.push_back(exit);
    report(id, gang::ShepherdTaskExited{exit});
  }
  const auto found = shepherds_.find(id);
  if (found == shepherds_.end()) return;
  if (!found->second.left.empty()) return work_on(id);
  found->second.phase = base::AttemptPhase::Exited;
  report(id, gang::ShepherdDone{});
}

void SimNode::set_frozen(Shepherd& s, bool frozen) {
  if (s.frozen == frozen) return;
  count_work(s);
  s.frozen = frozen;
  ++s.turn;
  if (!frozen) s.looked = world_.events.now();
  if (!frozen) work_on(s.placed.attempt);
}

// ---- idleness ---------------------------------------------------------------------------------

void SimNode::set_background(Shepherd& s, bool background) {
  if (std::exchange(s.background, background) == background) return;
  s.held = false;
  s.waits_for.reset();
  ++s.watch;
  if (background) return check_regularly(s.placed.attempt);
  if (!s.frozen) return judge(s, false);
  count_work(s);
  s.looked = world_.events.now();
  s.used_then = s.used;
}

// Returns what the monitor observes: the work since the last check. A fake wake-up looks like work
// but is none.
void SimNode::judge(Shepherd& s, bool is_fake) {
  count_work(s);
  const TimePoint now = world_.events.now();
  const Duration used = is_fake ? Duration{10ms} : s.used - s.used_then;
  s.meter.add(now - s.looked, used);
  s.used_then = s.used;
  s.looked = now;
  if (!agent_) return;
  const base::Activity activity{.idle = s.meter.is_idle(),
                                .waits = world_.behaviour(s.placed.attempt).deadlocks};
  carry_out(agent_->on_activity(s.placed.attempt, activity, local()));
}

// Attempts without slices are checked from time to time.
void SimNode::judge_unswitched() {
  std::vector<AttemptId> due;
  for (const auto& [id, s] : shepherds_) {
    const bool runs = s.phase == base::AttemptPhase::Running && !s.frozen && !s.killed;
    if (runs && world_.events.now() - s.looked > 900ms) due.push_back(id);
  }
  for (const AttemptId id : due) judge(shepherds_.at(id), false);
}

void SimNode::check_activity(AttemptId id) {
  const auto found = shepherds_.find(id);
  if (found == shepherds_.end() || found->second.phase != base::AttemptPhase::Running) return;
  if (!found->second.frozen) {
    const bool is_fake = world_.chance.one_in(1000 * world_.rarity);
    if (is_fake && found->second.asleep_until > world_.events.now()) ++fake_wakes_;
    judge(found->second, is_fake);
  }
  const auto again = shepherds_.find(id);
  if (again == shepherds_.end() || !again->second.background) return;
  again->second.held = again->second.meter.has_used();
  set_frozen(again->second, again->second.held);
}

void SimNode::check_regularly(AttemptId id) {
  after(kCheckInterval, [id, watch = shepherds_.at(id).watch](SimNode& n) {
    const auto found = n.shepherds_.find(id);
    if (found == n.shepherds_.end() || found->second.watch != watch) return;
    n.check_activity(id);
    if (n.shepherds_.contains(id) && n.shepherds_.at(id).watch == watch) n.check_regularly(id);
  });
}

// ---- the switcher -----------------------------------------------------------------------------

void SimNode::follow(const gang::SwitchPlan& plan) {
  first_epoch_ = std::min(first_epoch_, plan.epoch);  // since the node connected
  const bool again = current_ && current_->epoch == plan.epoch;
  const Duration moved =
      again ? std::chrono::abs(current_->start - plan.start) : local() - plan.start;
  if (plan.start <= local()) {
    // The plan came late, or the clock was far off. Until now the node was not in step with the
    // other nodes.
    if (moved > kNoticeable) trouble_ended_ = world_.events.now();
    current_ = plan;
    if (ahead_ && ahead_->epoch <= plan.epoch) ahead_.reset();
    apply_plan();
  } else {
    misled_ = again && moved > kNoticeable;  // it started the plan too early
    ahead_ = plan;
  }
  arm_switch();
}

void SimNode::arm_switch() {
  std::optional<TimePoint> at;
  if (current_) {
    if (const auto next = gang::next_switch(*current_, local())) at = next->at;
  }
  if (ahead_) at = at ? std::min(*at, ahead_->start) : ahead_->start;
  if (!at) return;
  const Duration late = world_.chance.between(0ns, kSwitchLateness);
  const TimePoint when = std::max(from_local(*at), world_.events.now()) + late;
  world_.events.at(when, [this, due = *at, number = ++plan_number_] {
    if (number != plan_number_) return;
    if (ahead_ && ahead_->start <= local()) {
      current_ = std::exchange(ahead_, std::nullopt);
      if (std::exchange(misled_, false)) trouble_ended_ = world_.events.now();
    }
    if (current_) apply_plan(due);
    arm_switch();
  });
}

void SimNode::apply_plan(std::optional<TimePoint> boundary) {
  if (boundary) boundary = current_->cluster_start + (*boundary - current_->start);
  const auto* run = gang::running_at(*current_, local());
  const std::vector<AttemptId> managed = current_->managed;
  for (const AttemptId id : managed) {
    const auto found = shepherds_.find(id);
    if (found == shepherds_.end()) continue;
    const bool runs = run != nullptr && std::binary_search(run->begin(), run->end(), id);
    set_background(found->second, false);
    const bool leaves = !runs && !found->second.frozen;
    switch_one(found->second, runs, boundary);
    if (leaves && found->second.phase == base::AttemptPhase::Running) judge(found->second, false);
  }
  const std::vector<AttemptId> background = current_->background;
  for (const AttemptId id : background) {
    const auto found = shepherds_.find(id);
    if (found == shepherds_.end()) continue;
    set_background(found->second, true);
    set_frozen(found->second, found->second.held);
  }
  world_.state_changed(id_);
}

// ---- barrier mode: as scored/node/switch_barrier, but no channel is taken from anybody ----------

void SimNode::switch_one(Shepherd& s, bool runs, std::optional<TimePoint> boundary) {
  const bool meets =
      world_.uses_barriers && connected_ && boundary && s.phase == base::AttemptPhase::Running;
  const bool had_turn = std::exchange(s.has_turn, runs);
  if (!runs && std::exchange(s.waits_for, std::nullopt)) ++unmet_;
  if (runs && s.waits_for) return;
  if (meets && runs && s.frozen) return wait_for_gang(s, *boundary);
  if (meets && runs != had_turn) {
    meet(s.placed.attempt, runs ? base::Meeting::Ready : base::Meeting::Stopped, *boundary);
  }
  set_frozen(s, !runs);
}

void SimNode::meet(AttemptId id, base::Meeting meeting, TimePoint boundary) {
  carry_out(agent_->on_meeting({id, meeting, boundary}));
}

void SimNode::wait_for_gang(Shepherd& s, TimePoint boundary) {
  s.waits_for = boundary;
  after(kMeetLimit, [id = s.placed.attempt, boundary](SimNode& n) {
    const auto found = n.shepherds_.find(id);
    if (found != n.shepherds_.end() && found->second.waits_for == boundary) {
      n.go_alone(found->second);
    }
  });
  meet(s.placed.attempt, base::Meeting::Ready, boundary);
}

void SimNode::end_meeting(const base::MetAll& met) {
  const auto found = shepherds_.find(met.attempt);
  if (found == shepherds_.end() || met.meeting != base::Meeting::Ready) return;
  Shepherd& s = found->second;
  if (!s.waits_for || std::chrono::abs(*s.waits_for - met.boundary) > base::kSameBoundary) return;
  s.waits_for.reset();
  ++met_;
  set_frozen(s, false);
}

void SimNode::go_alone(Shepherd& s) {
  s.waits_for.reset();
  ++unmet_;
  set_frozen(s, false);
  world_.state_changed(id_);
}

}  // namespace score::sim
