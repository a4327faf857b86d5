#include "tests/sim/control_world.hpp"

#include <algorithm>
#include <cmath>

namespace score::sim {

using namespace std::chrono_literals;
using base::NodeId;
using base::TimePoint;

namespace {

constexpr gang::FailureDetector::Limits kDetector{
    .suspect_after = base::limits::kSuspectAfter, .dead_after = 30s, .reconnect_grace = 3s};
constexpr Duration kTlsDelay = 300us;
constexpr Duration kFirstBeats = 200ms;  // spread over this time

// Stand-ins for the keyed hashes of scored/control/link_keys.hpp, with which the head and a member
// agree about a timetable.
constexpr std::uint64_t kTag = 1'000'003, kProof = 7'777'777;

gang::TimetableRelay::Seals seals_of(Position self) {
  return {[self](const std::string&, std::optional<std::uint64_t> tag) {
            return tag == self * kTag ? std::optional(self * kProof) : std::nullopt;
          },
          [](Position p, const std::string&) { return p * kProof; }};
}

}  // namespace

ControlWorld::ControlWorld(const ControlOptions& options)
    : options_(options),
      chance_(options.seed),
      tree_(options.nodes + 1, options.fanout),
      members_(options.nodes + 1),
      detector_(kDetector) {
  for (Position p = 0; p < members_.size(); ++p) {
    if (p > 0) {
      members_[p].offset = chance_.between(1h, 1000h);
      members_[p].drift = (static_cast<double>(chance_.below(100)) - 50) * 1e-6;
      detector_.watch(NodeId(p), now());
    }
    build(p);
  }
  for (Position p = 0; p < members_.size(); ++p) arm(p);
}

void ControlWorld::build(Position p) {
  Member& member = members_[p];
  const TimePoint begin = local(p);
  if (p > 0) {
    member.sender.emplace(tree_, p, options_.timing, begin + chance_.between(0ns, kFirstBeats));
  }
  if (p > 0) member.listener.emplace(tree_, p, options_.timing, begin);
  if (p == 0) member.verdicts.emplace(tree_, options_.timing, begin);
  member.relay.emplace(tree_, p, gang::TimetableRelay::Limits{}, seals_of(p));
}

TimePoint ControlWorld::local(Position p) const {
  const Member& member = members_[p];
  const auto since = static_cast<double>((now() - TimePoint{1h}).count());
  return now() + member.offset + Duration{std::llround(since * member.drift)};
}

TimePoint ControlWorld::cluster_time(Position p) const {
  return p == 0 ? local(0) : members_[p].clock.to_cluster(local(p));
}

// ---- network -----------------------------------------------------------------------------------

void ControlWorld::send(Position from, Position to, std::function<void()> arrive) {
  Member& sender = members_[from];
  sender.busy_until = std::max(sender.busy_until, now()) + options_.message;
  if (from == 0) ++head_.sent;
  const auto happens = [&](double share) {
    return static_cast<double>(chance_.below(1'000'000)) < share * 1e6;
  };
  if (is_cut_ || happens(options_.loss)) return;
  const int copies = happens(options_.twice) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    Duration delay = options_.hop + chance_.between(0ns, options_.hop / 4);
    if (happens(options_.reordered) || copy > 0) delay += chance_.between(0ns, 2ms);
    events_.at(sender.busy_until + delay, [this, to, life = members_[to].life, arrive] {
      Member& receiver = members_[to];
      if (!receiver.is_alive || receiver.life != life) return;
      receiver.busy_until = std::max(receiver.busy_until, now()) + options_.message;
      if (to == 0) ++head_.received;
      events_.at(receiver.busy_until, [this, to, life, arrive] {
        if (members_[to].is_alive && members_[to].life == life) arrive();
      });
    });
  }
}

// ---- time --------------------------------------------------------------------------------------

void ControlWorld::arm(Position p) {
  const Member& member = members_[p];
  TimePoint due = TimePoint::max();
  const auto consider = [&](std::optional<TimePoint> at) { due = std::min(due, at.value_or(due)); };
  if (member.sender) consider(member.sender->next_deadline());
  if (member.listener) consider(member.listener->next_deadline());
  if (member.verdicts) consider(member.verdicts->next_deadline());
  consider(member.relay->next_deadline());
  if (p == 0) consider(detector_.next_deadline());
  if (due == TimePoint::max()) return;
  const TimePoint at = now() + std::max(due - local(p), Duration{0}) + 1us;
  if (at >= member.wakes_at) return;
  members_[p].wakes_at = at;
  events_.at(at, [this, p, at, life = member.life] {
    if (members_[p].life != life || members_[p].wakes_at != at) return;
    members_[p].wakes_at = TimePoint::max();
    wake(p);
  });
}

void ControlWorld::wake(Position p) {
  if (members_[p].is_alive) advance(p);
}

void ControlWorld::advance(Position p) {
  Member& member = members_[p];
  const TimePoint now = local(p);
  if (member.listener && member.listener->advance(now)) member.sender->hasten(now);
  if (member.verdicts) {
    gang::TreeVerdicts::Findings findings;
    member.verdicts->advance(now, findings);
    apply(findings);
  }
  if (member.sender && now >= member.sender->next_deadline()) beat(p, member.sender->advance(now));
  const auto due = member.relay->next_deadline();
  if (due && now >= *due) carry_out(p, member.relay->advance(now));
  if (p == 0) judge();
  arm(p);
}

void ControlWorld::judge() {
  for (const auto& change : detector_.advance(local(0))) {
    const Position p = change.node.value();
    if (change.verdict == gang::Verdict::Suspect) {
      members_[p].suspected = now();
      if (members_[p].is_alive) ++false_suspicions_;
    } else if (members_[p].is_alive) {
      ++false_deaths_;
    }
  }
}

// ---- heartbeats --------------------------------------------------------------------------------

void ControlWorld::beat(Position from, const gang::BeatSender::Actions& actions) {
  Member& member = members_[from];
  if (actions.beat_by_tls) {
    ++head_.tls;
    events_.after(kTlsDelay, [this, from] {
      detector_.heard(NodeId(from), local(0));
      members_[from].suspected.reset();
    });
  }
  if (!actions.beat) return;
  if (!member.asked_first) member.asked_first = now();
  send(from, actions.beat->to,
       [this, from, to = actions.beat->to, summary = summary_of(from), asked = actions.beat->sent] {
         hear_beat(to, from, summary, asked);
       });
}

void ControlWorld::hear_beat(Position at, Position from, const gang::SubtreeSummary& summary,
                             TimePoint asked) {
  Member& member = members_[at];
  gang::TreeVerdicts::Findings findings;
  const auto reply = at == 0 ? member.verdicts->hear(from, summary, local(at), findings)
                             : member.listener->hear(from, summary, local(at));
  if (!reply) return;
  apply(findings);
  Answer answer;
  answer.beat = {asked, at == 0 || member.sender->is_linked(), reply->go_back};
  answer.has_clock = at == 0 || member.clock.synchronised();
  answer.sample.node_sent = asked;
  answer.sample.head_received = answer.sample.head_sent = cluster_time(at);
  if (at != 0) answer.sample.head_error = member.clock.error_bound(local(at));
  send(at, from, [this, at, from, answer] { hear_answer(from, at, answer); });
  advance(at);
}

void ControlWorld::apply(const gang::TreeVerdicts::Findings& findings) {
  const auto each = [](const gang::Positions& some, const auto& what) {
    for (const auto& range : some.ranges()) {
      for (Position p = range.begin; p < range.end; ++p) what(p);
    }
  };
  each(findings.alive, [&](Position p) {
    if (detector_.vouched(NodeId(p), local(0))) members_[p].suspected.reset();
  });
  each(findings.silent,
       [&](Position p) { detector_.denied(NodeId(p), local(0) - options_.timing.silent_after()); });
}

void ControlWorld::hear_answer(Position at, Position from, Answer answer) {
  Member& member = members_[at];
  const TimePoint now_here = local(at);
  if (!member.sender->answered(from, answer.beat, now_here)) return;
  if (!member.served_after_crash) member.served_after_crash = now();
  if (member.asked_first) worst_wait_ = std::max(worst_wait_, now() - *member.asked_first);
  member.asked_first.reset();
  answer.sample.node_received = now_here;
  if (answer.has_clock) (void)member.clock.add(answer.sample);
  arm(at);
}

// ---- timetables --------------------------------------------------------------------------------

ControlWorld::Publication ControlWorld::publish(std::uint32_t kinds, std::size_t bytes) {
  std::vector<gang::TimetableRelay::Part> parts(kinds);
  for (std::uint32_t kind = 0; kind < kinds; ++kind) {
    const std::uint64_t nodes = options_.nodes;
    parts[kind].to.add({static_cast<Position>(1 + nodes * kind / kinds),
                        static_cast<Position>(1 + nodes * (kind + 1) / kinds)});
    parts[kind].body = std::string(bytes, 'a');
    for (const auto& range : parts[kind].to.ranges()) {
      for (Position p = range.begin; p < range.end; ++p) parts[kind].tags.push_back(p * kTag);
    }
  }
  publication_ = {};
  publication_over_ = false;
  published_at_ = now();
  const std::uint64_t sent_before = head_.sent;
  ++published_;
  members_[0].busy_until = now() + options_.nodes * options_.tag;
  carry_out(0, members_[0].relay->publish(published_, parts, summary_of(0).silent, local(0)));
  arm(0);
  while (!publication_over_) events_.step();
  publication_.ended = now() - published_at_;
  publication_.head_sent = head_.sent - sent_before;
  run_for(50ms);
  return publication_;
}

void ControlWorld::carry_out(Position at, const gang::TimetableRelay::Actions& actions) {
  Member& member = members_[at];
  if (!actions.deliver.empty() && std::exchange(member.has, published_) != published_) {
    publication_.last = std::max(publication_.last, now() - published_at_);
  }
  for (const auto& [to, bundle] : actions.bundles) {
    send(at, to, [this, at, to = to, bundle = bundle] {
      const auto silent = summary_of(to).silent;
      carry_out(to, members_[to].relay->hear(at, bundle, silent, local(to)));
      arm(to);
    });
  }
  for (const auto& [to, ack] : actions.acks) {
    send(at, to, [this, at, to = to, ack = ack] {
      carry_out(to, members_[to].relay->hear(at, ack, local(to)));
      arm(to);
    });
  }
  for (const auto& [number, missing] : actions.missing) {
    if (number == published_) publication_.missing = missing.count();
  }
  if (std::count(actions.ended.begin(), actions.ended.end(), published_) > 0 && at == 0) {
    publication_over_ = true;
  }
}

// ---- events and views --------------------------------------------------------------------------

void ControlWorld::run_for(Duration time) {
  const TimePoint end = now() + time;
  bool is_over = false;
  events_.at(end, [&is_over] { is_over = true; });
  while (!is_over) events_.step();
}

void ControlWorld::crash(Position p) {
  members_[p].is_alive = false;
  ++members_[p].life;
  crashed_at_ = now();
  for (Member& member : members_) member.served_after_crash.reset();
}

void ControlWorld::restart_head() {
  ++members_[0].life;
  members_[0].wakes_at = TimePoint::max();
  detector_ = gang::FailureDetector(kDetector);
  for (Position p = 0; p < members_.size(); ++p) {
    if (p > 0 && members_[p].is_alive) detector_.watch(NodeId(p), local(0));
    ++members_[p].life;
    members_[p].wakes_at = TimePoint::max();
    members_[p].suspected.reset();
    members_[p].asked_first.reset();
    build(p);
    arm(p);
  }
}

ControlWorld::Counts ControlWorld::take_head_counts() {
  return std::exchange(head_, {});
}

std::vector<Position> ControlWorld::suspects() const {
  std::vector<Position> some;
  for (Position p = 1; p < members_.size(); ++p) {
    if (detector_.verdict(NodeId(p)) != gang::Verdict::Alive) some.push_back(p);
  }
  return some;
}

std::optional<TimePoint> ControlWorld::suspected_at(Position p) const {
  return members_[p].suspected;
}

Duration ControlWorld::first_served_after_crash(Position p) const {
  return members_[p].served_after_crash.value_or(TimePoint::max()) - crashed_at_;
}

ControlWorld::Clocks ControlWorld::clocks() const {
  Clocks clocks;
  for (Position p = 1; p < members_.size(); ++p) {
    const Member& member = members_[p];
    if (!member.is_alive) continue;
    if (!member.clock.synchronised()) {
      ++clocks.unknown;
      continue;
    }
    const Duration error = std::chrono::abs(cluster_time(p) - local(0));
    const Duration bound = member.clock.error_bound(local(p));
    clocks.worst_error = std::max(clocks.worst_error, error);
    clocks.worst_bound = std::max(clocks.worst_bound, bound);
    clocks.all_within = clocks.all_within && error <= bound;
  }
  return clocks;
}

gang::SubtreeSummary ControlWorld::summary_of(Position p) const {
  return p == 0 ? members_[0].verdicts->summary() : members_[p].listener->summary();
}

bool ControlWorld::is_all_known() const {
  const gang::SubtreeSummary summary = summary_of(0);
  for (const auto* some : {&summary.unknown, &summary.silent}) {
    for (const auto& range : some->ranges()) {
      for (Position p = range.begin; p < range.end; ++p) {
        if (members_[p].is_alive) return false;
      }
    }
  }
  return true;
}

}  // namespace score::sim
