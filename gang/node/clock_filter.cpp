// A sample's offset is wrong by at most half its round trip, however the delay was split between
// the two directions. A node that answers for the head adds its own error, as if the trip were
// longer. So the bound of each sample is known, it grows only with the oscillators' drift, and the
// sample with the least bound is the best. Because the bounds are hard, they also reveal a clock
// that was stepped: two disjoint intervals cannot both be right.
//
// The drift comes from the best samples of windows far apart. It is used only if the round trips
// leave less doubt about it than kDriftDoubt. It keeps the estimate good between samples, while the
// stated bound still assumes kAssumedDrift.
#include "gang/node/clock_filter.hpp"

#include <algorithm>
#include <cmath>

namespace score::gang {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 8;
constexpr std::size_t kHistory = 16;
constexpr double kAssumedDrift = 100e-6;
constexpr double kDriftDoubt = 10e-6;
constexpr double kMostDrift = 500e-6;  // a crystal beyond this is broken; adjtimex stops there too
constexpr Duration kLongestExchange = 10s;
constexpr Duration kClockRange = std::chrono::hours{24 * 365 * 100};

Duration scaled(Duration d, double factor) {
  return Duration{std::llround(static_cast<double>(d.count()) * factor)};
}

bool plausible(TimePoint t) {
  return t.time_since_epoch() >= -kClockRange && t.time_since_epoch() <= kClockRange;
}

}  // namespace

Duration ClockFilter::bound_at(const Point& point, TimePoint node) {
  return point.round_trip / 2 + scaled(std::chrono::abs(node - point.node), kAssumedDrift);
}

bool ClockFilter::contradicts(const Point& point) const {
  const Duration expected = to_cluster(point.node) - point.node;
  return std::chrono::abs(point.offset - expected) >
         bound_at(*best_, point.node) + point.round_trip / 2 + 1us;
}

void ClockFilter::restart() {
  restart_ = true;
  is_same_ = false;
}

bool ClockFilter::add(const ClockSample& s) {
  if (!plausible(s.node_sent) || !plausible(s.head_received) || !plausible(s.head_sent) ||
      !plausible(s.node_received)) {
    return false;
  }
  const Duration there_and_back = s.node_received - s.node_sent;
  const Duration in_head = s.head_sent - s.head_received;
  if (in_head < 0ns || there_and_back < in_head || there_and_back > kLongestExchange) return false;
  if (s.head_error < 0ns || s.head_error > kLongestExchange) return false;

  const Point point{s.node_received,
                    ((s.head_received - s.node_sent) + (s.head_sent - s.node_received)) / 2,
                    there_and_back - in_head + 2 * s.head_error};
  if (std::chrono::abs(point.offset) > point.round_trip / 2 + 1us) is_same_ = false;
  const bool contradiction = best_ && !restart_ && contradicts(point);
  if (contradiction && !suspicious_) {
    suspicious_ = true;
    return false;
  }
  if (contradiction || restart_) {
    window_.clear();
    history_.clear();
    best_.reset();
    since_history_ = 0;
    drift_ = 0;
  }
  restart_ = suspicious_ = false;
  window_.push_back(point);
  if (window_.size() > kWindow) window_.pop_front();
  choose(point.node);
  estimate_drift();
  return true;
}

// An old sample's bound grows. The best stays until a newer one is better, even if that takes long.
void ClockFilter::choose(TimePoint now) {
  for (const Point& point : window_) {
    if (!best_ || bound_at(point, now) < bound_at(*best_, now)) best_ = point;
  }
}

void ClockFilter::estimate_drift() {
  if (++since_history_ == kWindow || history_.empty()) {
    since_history_ = 0;
    history_.push_back(*best_);
    if (history_.size() > kHistory) history_.pop_front();
  }
  for (const Point& old : history_) {
    const auto apart = static_cast<double>((best_->node - old.node).count());
    const auto doubt = static_cast<double>(((old.round_trip + best_->round_trip) / 2).count());
    if (apart <= 0 || doubt / apart > kDriftDoubt) continue;
    const auto moved = static_cast<double>((best_->offset - old.offset).count());
    drift_ = std::clamp(moved / apart, -kMostDrift, kMostDrift);
    return;
  }
}

TimePoint ClockFilter::to_cluster(TimePoint node) const {
  if (is_identity()) return node;
  return node + best_->offset + scaled(node - best_->node, drift_);
}

TimePoint ClockFilter::to_node(TimePoint cluster) const {
  if (is_identity()) return cluster;
  const Duration since = cluster - (best_->node + best_->offset);
  return best_->node + since - scaled(since, drift_ / (1 + drift_));
}

Duration ClockFilter::offset() const {
  return is_identity() ? 0ns : best_->offset;
}

Duration ClockFilter::error_bound(TimePoint node) const {
  if (!best_) return Duration::max();
  return is_identity() ? 0ns : bound_at(*best_, node);
}

}  // namespace score::gang
