#pragma once
// ClockFilter computes cluster time on a node: offset and drift of the head's monotonic clock, from
// timestamped exchanges on the node's connection. It is a minimum-delay filter (Cristian 1989;
// NTP's clock filter, RFC 5905 section 10): the sample with the least bound on its error wins.

#include "base/time.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace score::gang {

using base::Duration;
using base::TimePoint;

// A sample is one exchange. Its four times are monotonic: node sent, head received, head sent, node
// received.
struct ClockSample {
  TimePoint node_sent{}, head_received{}, head_sent{}, node_received{};
  // Bound on the error of the head's two times, if a different node answered in its place; >= 0.
  Duration head_error{0};
};

class ClockFilter {
 public:
  // Returns false, and changes nothing, for a sample that runs backwards, took longer than 10 s or
  // lies beyond what a monotonic clock can show. Two samples in a row that contradict the estimate
  // (a suspended host, a different head) restart it from the second.
  bool add(const ClockSample& sample);
  // Records a new connection, perhaps to a different head: the next sample replaces everything.
  // Until then the old estimate is still used, but does not count as synchronised.
  void restart();

  // Sets whether both ends of this connection report the very same clock. If so, the estimate is
  // exact from the first sample until one contradicts it, because clones of a virtual machine
  // report the same clock too.
  void set_same(bool same) { is_same_ = same; }

  // Returns true after set_same(true) while no sample has contradicted it.
  [[nodiscard]] bool is_same() const { return is_same_ && synchronised(); }

  [[nodiscard]] bool synchronised() const { return best_.has_value() && !restart_; }

  // These return their argument before the first sample.
  [[nodiscard]] TimePoint to_cluster(TimePoint node) const;
  [[nodiscard]] TimePoint to_node(TimePoint cluster) const;
  [[nodiscard]] Duration offset() const;  // cluster - node, at the best sample

  [[nodiscard]] double drift() const { return drift_; }

  // Returns a bound on the error of to_cluster at `node`: half the best round trip plus assumed
  // drift (100 ppm, the worst of PC oscillators) since that sample. It is max() before the first
  // sample, and 0 for the same clock.
  [[nodiscard]] Duration error_bound(TimePoint node) const;

 private:
  struct Point {
    TimePoint node{};  // when the node received the answer
    Duration offset{0};
    Duration round_trip{0};
  };

  static Duration bound_at(const Point& point, TimePoint node);
  [[nodiscard]] bool contradicts(const Point& point) const;

  [[nodiscard]] bool is_identity() const { return !best_ || is_same(); }

  void choose(TimePoint now);
  void estimate_drift();

  std::deque<Point> window_;   // the last samples, newest last
  std::deque<Point> history_;  // the best of each full window, oldest first; for the drift
  std::size_t since_history_ = 0;
  std::optional<Point> best_;
  double drift_ = 0;  // cluster seconds per node second, minus 1
  bool restart_ = false;
  bool is_same_ = false;
  bool suspicious_ = false;  // the last sample contradicted the estimate
};

}  // namespace score::gang
