#pragma once
// Cluster time on a node: offset and drift of the head's monotonic clock, from timestamped
// exchanges on the node's connection. Minimum-delay filter (Cristian 1989; NTP's clock filter,
// RFC 5905 section 10): of the last samples the one with the least bound on its error wins.

#include "base/time.hpp"

#include <cstddef>
#include <deque>
#include <optional>

namespace score::gang {

using base::Duration;
using base::TimePoint;

// One exchange, all four times monotonic: node sent, head received, head sent, node received.
struct ClockSample {
  TimePoint node_sent{}, head_received{}, head_sent{}, node_received{};
  // Bound on the error of the head's two times, if another node answered for it; >= 0.
  Duration head_error{0};
};

class ClockFilter {
 public:
  // Refuses (false, nothing changes) a sample that runs backwards, took longer than 10 s or lies
  // beyond what a monotonic clock can show. Two samples in a row that contradict the estimate (a
  // suspended host, another head) start it anew from the second.
  bool add(const ClockSample& sample);
  // A new connection, perhaps to another head: the next sample replaces everything. Until it comes
  // the old estimate goes on, but is not called synchronised.
  void restart();

  // Both ends of this connection say that they read the very same clock. Then the estimate is
  // exactly that, from the first sample on and until one contradicts: clones of a virtual machine
  // say so too.
  void set_same(bool same) { is_same_ = same; }

  // set_same(true), and no sample has contradicted since.
  [[nodiscard]] bool is_same() const { return is_same_ && synchronised(); }

  [[nodiscard]] bool synchronised() const { return best_.has_value() && !restart_; }

  // Before the first sample: the identity.
  [[nodiscard]] TimePoint to_cluster(TimePoint node) const;
  [[nodiscard]] TimePoint to_node(TimePoint cluster) const;
  [[nodiscard]] Duration offset() const;  // cluster - node, at the best sample

  [[nodiscard]] double drift() const { return drift_; }

  // Bound on the error of to_cluster at `node`: half the best round trip plus assumed drift
  // (100 ppm, the worst of PC oscillators) since that sample. Before the first sample: max(); of
  // the same clock: 0.
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
  std::deque<Point> history_;  // the best of each full window, oldest first: for the drift
  std::size_t since_history_ = 0;
  std::optional<Point> best_;
  double drift_ = 0;  // cluster seconds per node second, minus 1
  bool restart_ = false;
  bool is_same_ = false;
  bool suspicious_ = false;  // the last sample contradicted the estimate
};

}  // namespace score::gang
