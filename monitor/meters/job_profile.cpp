#include "monitor/meters/job_profile.hpp"

#include <algorithm>
#include <cstdint>

namespace score::monitor {

namespace {

// A node may report anything, so sums stay where they cannot overflow.
constexpr Duration kMostCpu{std::int64_t{1} << 60U};
constexpr Bytes kMostBytes{std::uint64_t{1} << 60U};

void add_cpu(Duration& sum, Duration more) {
  sum = std::min(sum + std::clamp(more, Duration{0}, kMostCpu), kMostCpu);
}

void add_bytes(Bytes& sum, Bytes more) {
  sum = std::min(sum + std::min(more, kMostBytes), kMostBytes);
}

}  // namespace

WallTime JobProfile::end_of_step(WallTime at) const {
  return WallTime{(at.time_since_epoch() + step_ / 2) / step_ * step_};
}

// Nodes report at slightly different times, so memory is summed over the last reports of all nodes
// that are not older than the step before.
void JobProfile::add(NodeId node, WallTime at, const NodeUse& use) {
  WallTime end = end_of_step(at);
  if (points_.empty() || end > points_.back().end) {
    if (points_.size() == kMostPoints) {
      halve();
      end = std::max(end_of_step(at), points_.back().end);
    }
    if (points_.empty() || end > points_.back().end) points_.push_back({.end = end});
  }
  ProfilePoint& point = points_.back();
  add_cpu(point.cpu, use.cpu);
  add_bytes(point.pm_sent, use.pm_sent);
  last_[node] = {point.end, use.memory};
  Bytes sum{0};
  for (const auto& [other, report] : last_) {
    if (report.end + step_ >= point.end) add_bytes(sum, report.memory);
  }
  point.memory = std::max(point.memory, sum);
  point.memory_largest = std::max(point.memory_largest, std::min(use.memory, kMostBytes));
}

void JobProfile::halve() {
  step_ *= 2;
  std::vector<ProfilePoint> merged;
  for (const ProfilePoint& point : points_) {
    const WallTime end{(point.end.time_since_epoch() + step_ - Duration{1}) / step_ * step_};
    if (merged.empty() || merged.back().end != end) merged.push_back({.end = end});
    ProfilePoint& sum = merged.back();
    add_cpu(sum.cpu, point.cpu);
    add_bytes(sum.pm_sent, point.pm_sent);
    sum.memory = std::max(sum.memory, point.memory);
    sum.memory_largest = std::max(sum.memory_largest, point.memory_largest);
  }
  points_ = std::move(merged);
}

}  // namespace score::monitor
