#pragma once
// All that nodes measured, as far back as a document shows. Pure.

#include "monitor/meters/load_meter.hpp"
#include "monitor/meters/peer_meter.hpp"
#include "monitor/meters/run_history.hpp"
#include "monitor/meters/scratch_meter.hpp"
#include "monitor/meters/switch_window.hpp"

#include <deque>
#include <optional>
#include <vector>

namespace score::monitor {

class ClusterMeter {
 public:
  static constexpr Duration kOverheadWindow = 10s;

  // Returns the late switches of the sample. `node` counts from 0 without gaps.
  std::vector<LateSwitch> feed(NodeId node, const NodeSample& sample);
  // The servers of jobs' striped volumes there; see ScratchMeter.
  void feed_volumes(NodeId node, TimePoint taken, const std::vector<VolumeSample>& volumes);
  // A task of the job there, at a moment of which samples may still come.
  void task_ended(NodeId node, JobId job, TimePoint at);
  // The node is gone, or samples stop: its loads are not known from `now` on.
  void interrupt(NodeId node, TimePoint now);
  void interrupt_all(TimePoint now);

  // nullptr: no sample since the last interruption.
  [[nodiscard]] const NodeLoad* load(NodeId node) const;
  // nullptr: no sample ever.
  [[nodiscard]] const NodeTotals* totals(NodeId node) const;
  [[nodiscard]] std::vector<Run> runs(NodeId node, TimePoint from, TimePoint to) const;
  // ... at idle priority.
  [[nodiscard]] std::vector<Run> fills(NodeId node, TimePoint from, TimePoint to) const;

  // nullptr: no sample ever.
  [[nodiscard]] const ScratchMeter* scratch(NodeId node) const;

  // Time lost in switches by time in which jobs ran, over kOverheadWindow; none: nothing ran.
  [[nodiscard]] std::optional<double> overhead(NodeId node) const;
  [[nodiscard]] std::optional<double> overhead() const;
  // Of the nodes that switch, a node.
  [[nodiscard]] double switches_per_second() const;

  // Sums over all nodes since the first sample of each, for counters. Unlike the sum of the totals
  // they never go back when a daemon restarts, and leave out what nodes did before: that would look
  // like a burst.
  [[nodiscard]] const NodeTotals& sum() const { return sum_; }

  [[nodiscard]] const SwitchWindow& switches() const { return switches_; }

  // Fed by the owner of the attempts.
  [[nodiscard]] PeerMeter& peers() { return peers_; }

  [[nodiscard]] const PeerMeter& peers() const { return peers_; }

 private:
  struct Totals {
    TimePoint at{};
    Duration lost{0}, busy{0};
    std::uint64_t switches = 0;
  };

  struct Node {
    LoadMeter load;
    RunHistory runs;
    ScratchMeter scratch;
    std::deque<Totals> totals;  // of kOverheadWindow
    NodeTotals newest;
    bool has_totals = false;
  };

  [[nodiscard]] const Node* find(NodeId node) const;
  void note_totals(Node& node, TimePoint taken, const NodeTotals& totals);

  std::vector<Node> nodes_;
  SwitchWindow switches_;
  PeerMeter peers_;
  NodeTotals sum_;
};

}  // namespace score::monitor
