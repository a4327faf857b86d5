#include "monitor/meters/job_profile.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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

void JobProfile::add(NodeId node, JobId reported, WallTime at, const NodeUse& use) {
  WallTime end = end_of_step(at);
  if (points_.empty() || end > points_.back().end) {
    while (points_.size() == kMostPoints) double_step();
    if (!points_.empty()) end = std::max(end_of_step(at), points_.back().end);
    if (points_.empty() || end > points_.back().end) points_.push_back({.end = end});
  }
  ProfilePoint& point = points_.back();
  add_cpu(point.cpu, use.cpu);
  add_bytes(point.pm_sent, use.pm_sent);
  last_[{node, reported}] = {point.end, use.memory};
  add_memory(point);
}

// Nodes report at slightly different times, so memory is summed over the last reports that are not
// older than the step before.
void JobProfile::add_memory(ProfilePoint& point) {
  std::erase_if(last_, [&](const auto& one) { return one.second.end + step_ < point.end; });
  Bytes sum{0};
  Bytes of_node{0};
  std::optional<NodeId> node;
  for (const auto& [reporter, report] : last_) {
    if (std::exchange(node, reporter.first) != reporter.first) of_node = Bytes{0};
    add_bytes(of_node, report.memory);
    add_bytes(sum, report.memory);
    point.memory_largest = std::max(point.memory_largest, of_node);
  }
  point.memory = std::max(point.memory, sum);
}

void JobProfile::double_step() {
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
