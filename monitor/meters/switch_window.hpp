#pragma once
// SwitchWindow holds the switches of the last seconds over all nodes: the lengths of their phases,
// the skew of the nodes at each boundary, and the late switches. It is pure.

#include "monitor/sampler/samples.hpp"

#include <array>
#include <deque>
#include <map>
#include <optional>

namespace score::monitor {

struct Quantiles {
  std::size_t count = 0;
  Duration p50{0}, p95{0}, max{0};
};

struct LateSwitch {
  std::uint64_t id = 0;  // counts from 1
  NodeId node;
  TimePoint due{};  // cluster time
  Duration late{0};
  Duration slice{0};  // the slice that it delayed
};

class SwitchWindow {
 public:
  static constexpr Duration kKept = 11s;
  static constexpr std::size_t kMostSwitches = 65'536;
  static constexpr std::size_t kMostLate = 4'096;

  // Processes a sample and returns its late switches.
  std::vector<LateSwitch> feed(NodeId node, const NodeSample& sample);

  struct Summary {
    std::size_t count = 0;
    std::array<Quantiles, kSwitchPhases> phases{};
    Quantiles skew;                         // of boundaries at which at least two nodes switched
    std::optional<Duration> mean_overhead;  // of a switch at which a job enters
  };

  // Returns the figures of switches due in [from, to).
  [[nodiscard]] Summary summary(TimePoint from, TimePoint to) const;

  [[nodiscard]] std::optional<LateSwitch> last_late() const;
  // Returns one of the last kMostLate late switches.
  [[nodiscard]] std::optional<LateSwitch> late(std::uint64_t id) const;

  // Returns the skews of boundaries that were settled since the start, for the metric.
  [[nodiscard]] const TimeHistogram& skews() const { return skews_; }

 private:
  struct Entry {
    TimePoint due{};
    bool enters = false;                            // true: some job entered
    std::array<Duration, kSwitchPhases> lengths{};  // kNone: no such phase
  };

  static constexpr Duration kNone{-1};
  static Entry entry_of(const SwitchSample& sample);

  struct Boundary {
    TimePoint first{}, last{};
    std::size_t nodes = 0;
  };

  void note_boundary(const SwitchSample& sample);
  void settle(TimePoint before);

  std::deque<Entry> entries_;  // roughly by time
  // Boundaries that nodes report differ by the errors of their clocks, so boundaries close together
  // count as one.
  std::map<TimePoint, Boundary> boundaries_;
  TimePoint settled_{};
  TimeHistogram skews_;
  std::deque<LateSwitch> late_;
  std::uint64_t last_id_ = 0;
};

}  // namespace score::monitor
