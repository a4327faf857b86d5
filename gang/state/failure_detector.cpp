// A heartbeat only stores the time. The queue holds, per node, a time at which its verdict may
// change; if the node was heard by then, it is queued again. So heartbeats cost almost nothing, and
// each node is examined about once per suspect_after.
#include "gang/state/failure_detector.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace score::gang {

using base::Duration;
using base::NodeId;
using base::TimePoint;

namespace {
constexpr Duration kOwnStall = std::chrono::seconds{1};
}

FailureDetector::FailureDetector(Limits limits) : limits_(limits) {
  SCORE_ASSERT(limits.suspect_after < limits.dead_after, "a node is suspect before it is dead");
}

TimePoint FailureDetector::due(const Watched& w) const {
  if (w.verdict == Verdict::Alive) return w.heard + limits_.suspect_after;
  return w.deadline.value_or(w.heard + limits_.dead_after);
}

void FailureDetector::requeue(NodeId node, Watched& w) {
  queue_.erase({w.queued, node});
  if (w.verdict == Verdict::Dead) return;
  w.queued = due(w);
  queue_.emplace(w.queued, node);
}

void FailureDetector::watch(NodeId node, TimePoint now) {
  Watched& w = nodes_[node];
  queue_.erase({w.queued, node});
  w = {now, now, {}, Verdict::Alive, true, {}, std::nullopt};
  requeue(node, w);
}

void FailureDetector::expect(NodeId node, TimePoint now, TimePoint deadline) {
  Watched& w = nodes_[node];
  queue_.erase({w.queued, node});
  w = {now, now, {}, Verdict::Suspect, false, {}, deadline};
  requeue(node, w);
}

void FailureDetector::forget(NodeId node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  queue_.erase({found->second.queued, node});
  nodes_.erase(found);
}

bool FailureDetector::heard(NodeId node, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end() && found->second.linked) {
    found->second.heard_directly = std::max(found->second.heard_directly, now);
  }
  return vouched(node, now);
}

void FailureDetector::denied(NodeId node, TimePoint since) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.linked) return;
  Watched& w = found->second;
  w.heard = std::max(w.heard_directly, std::min(w.heard, since));
  requeue(node, w);
}

bool FailureDetector::vouched(NodeId node, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.linked) return false;
  Watched& w = found->second;
  if (w.verdict == Verdict::Dead) return false;
  w.heard = std::max(w.heard, std::min(now, w.heard_directly + limits_.vouched_for));
  const bool is_silent = now >= w.heard + limits_.suspect_after;
  if (w.verdict == Verdict::Alive || is_silent || now < w.deaf_until) return false;
  w.verdict = Verdict::Alive;
  requeue(node, w);
  return true;
}

bool FailureDetector::deaf(NodeId node, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !found->second.linked) return false;
  Watched& w = found->second;
  w.deaf_until = now + limits_.deaf_for;
  if (w.verdict != Verdict::Alive) return false;
  w.verdict = Verdict::Suspect;
  requeue(node, w);
  return true;
}

void FailureDetector::hears(NodeId node) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.deaf_until = TimePoint();
}

bool FailureDetector::lost_link(NodeId node, TimePoint now, bool was_announced) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.verdict == Verdict::Dead) return false;
  Watched& w = found->second;
  if (!std::exchange(w.linked, false)) return false;
  const bool was_alive = w.verdict == Verdict::Alive;
  const TimePoint grace = now + limits_.reconnect_grace;
  const bool is_no_evidence = was_announced || !was_alive;
  w.deadline = is_no_evidence ? std::max(grace, w.heard + limits_.dead_after) : grace;
  w.verdict = Verdict::Suspect;
  requeue(node, w);
  return was_alive;
}

void FailureDetector::shift_times(Duration time) {
  queue_.clear();
  for (auto& [node, w] : nodes_) {
    w.heard += time;
    w.heard_directly += time;
    if (w.deadline) *w.deadline += time;
    requeue(node, w);
  }
}

std::vector<FailureDetector::Change> FailureDetector::advance(TimePoint now) {
  std::vector<Change> changes;
  if (!queue_.empty() && now - queue_.begin()->first > kOwnStall) {
    shift_times(now - queue_.begin()->first);
  }
  while (!queue_.empty() && queue_.begin()->first <= now) {
    const NodeId node = queue_.begin()->second;
    Watched& w = nodes_.at(node);
    if (due(w) <= now) {
      w.verdict = w.verdict == Verdict::Alive ? Verdict::Suspect : Verdict::Dead;
      changes.push_back({node, w.verdict, now - w.heard});
    }
    requeue(node, w);
  }
  return changes;
}

std::optional<TimePoint> FailureDetector::next_deadline() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first;
}

Verdict FailureDetector::verdict(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? Verdict::Dead : found->second.verdict;
}

}  // namespace score::gang
