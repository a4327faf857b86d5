#include "monitor/meters/load_history.hpp"

#include <algorithm>

namespace score::monitor {

namespace {

// Returns what happened between two totals.
HistoryPoint difference(const HistoryTotals& before, const HistoryTotals& after) {
  const auto grown = [](auto from, auto to) { return to > from ? to - from : decltype(to){}; };
  HistoryPoint made;
  made.observed = after.at - before.at;
  made.user = grown(before.user, after.user);
  made.system = grown(before.system, after.system);
  made.filled = grown(before.filled, after.filled);
  made.busy = grown(before.busy, after.busy);
  made.overhead = grown(before.overhead, after.overhead);
  made.switches = grown(before.switches, after.switches);
  made.late = grown(before.late, after.late);
  const double seconds = std::chrono::duration<double>(made.observed).count();
  made.job_seconds = seconds * after.jobs;
  made.node_seconds = seconds * after.nodes;
  made.core_seconds = seconds * after.cores;
  return made;
}

void add_to(HistoryPoint& sum, const HistoryPoint& part) {
  sum.observed += part.observed;
  sum.user += part.user;
  sum.system += part.system;
  sum.filled += part.filled;
  sum.busy += part.busy;
  sum.overhead += part.overhead;
  sum.switches += part.switches;
  sum.late += part.late;
  sum.job_seconds += part.job_seconds;
  sum.node_seconds += part.node_seconds;
  sum.core_seconds += part.core_seconds;
}

}  // namespace

// The whole of a difference counts to the step in which it ends.
void LoadHistory::add(const HistoryTotals& totals) {
  const std::optional<HistoryTotals> before = std::exchange(last_, totals);
  if (!before || totals.at <= before->at || totals.at - before->at > kLongestGap) return;
  const HistoryPoint part = difference(*before, totals);
  for (Ring& ring : rings_) {
    const WallTime begin{ring.step * ((totals.at.time_since_epoch() - Duration(1)) / ring.step)};
    const bool is_later = ring.points.empty() || ring.points.back().begin < begin;
    if (is_later) ring.points.push_back({.begin = begin});
    if (ring.points.size() > ring.most) ring.points.pop_front();
    add_to(ring.points.back(), part);
  }
}

void LoadHistory::restore(Duration step, std::span<const HistoryPoint> points) {
  auto* const ring = std::ranges::find(rings_, step, &Ring::step);
  if (ring == std::end(rings_)) return;
  ring->points.clear();
  for (const HistoryPoint& point : points) {
    if (point.begin.time_since_epoch() % step != Duration(0)) continue;
    if (!ring->points.empty() && point.begin <= ring->points.back().begin) continue;
    ring->points.push_back(point);
    if (ring->points.size() > ring->most) ring->points.pop_front();
  }
}

const std::deque<HistoryPoint>* LoadHistory::points(Duration step) const {
  const auto* ring = std::ranges::find(rings_, step, &Ring::step);
  return ring == std::end(rings_) ? nullptr : &ring->points;
}

}  // namespace score::monitor
