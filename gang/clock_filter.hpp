// Cluster time on a node: offset and drift of the head's monotonic clock, from timestamped
// exchanges on the node's connection. Minimum-delay filter (Cristian 1989; NTP's clock filter,
// RFC 5905 section 10): of the last samples the one with the least round trip wins, its half
// round trip bounds the error.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.hpp"

namespace score::gang {

using base::Duration;
using base::TimePoint;

// One exchange, all four times monotonic: node sent, head received, head sent, node received.
struct ClockSample {
  TimePoint node_sent{}, head_received{}, head_sent{}, node_received{};
};

class ClockFilter {
 public:
  // Refuses (false, nothing changes) a sample that runs backwards or took longer than 10 s.
  bool add(const ClockSample& sample);
  bool synchronised() const;
  // Before the first sample: the identity.
  TimePoint to_cluster(TimePoint node) const;
  TimePoint to_node(TimePoint cluster) const;
  Duration offset() const;  // cluster - node, at the best sample
  // Bound on the error of to_cluster at `node`: half the best round trip plus assumed drift
  // (100 ppm, the worst of PC oscillators) since that sample.
  Duration error_bound(TimePoint node) const;

 private:
  struct Point {
    TimePoint node{};
    Duration offset{0};
    Duration round_trip{0};
  };
  std::vector<Point> window_;  // newest last, at most kWindow
  std::optional<Point> best_;
  double drift_ = 0;  // cluster seconds a node second, minus 1
};

}  // namespace score::gang
