#pragma once
// The switches of the last seconds over all nodes: how long their phases took, how far apart the
// nodes were at one boundary, which came late. Pure.

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
};

class SwitchWindow {
 public:
  static constexpr Duration kKept = 11s;
  static constexpr Duration kLate = 1ms;
  static constexpr std::size_t kMostSwitches = 65'536;
  static constexpr std::size_t kMostLate = 4'096;

  // Returns those of the sample that were late.
  std::vector<LateSwitch> feed(NodeId node, const NodeSample& sample);

  struct Summary {
    std::size_t count = 0;
    std::array<Quantiles, kSwitchPhases> phases{};
    Quantiles skew;  // of boundaries at which at least two nodes switched
    std::optional<Duration> mean_lost;
  };

  // Of switches due in [from, to).
  [[nodiscard]] Summary summary(TimePoint from, TimePoint to) const;

  [[nodiscard]] std::optional<LateSwitch> last_late() const;
  // One of the last kMostLate.
  [[nodiscard]] std::optional<LateSwitch> late(std::uint64_t id) const;

  // Skews of boundaries that were settled since the start; for the metric.
  [[nodiscard]] const TimeHistogram& skews() const { return skews_; }

 private:
  struct Entry {
    TimePoint due{};
    bool enters = false;                            // some job
    std::array<Duration, kSwitchPhases> lengths{};  // kNone: it had no such phase
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
  // Boundaries that nodes report differ by their clocks' errors: they are one if they lie together.
  std::map<TimePoint, Boundary> boundaries_;
  TimePoint settled_{};
  TimeHistogram skews_;
  std::deque<LateSwitch> late_;
  std::uint64_t last_id_ = 0;
};

}  // namespace score::monitor
