#pragma once
// ClusterMeter holds all measurements of the nodes, as far back as a document shows them. It is
// pure.

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

  // Processes a sample and returns its late switches. `node` counts from 0 without gaps.
  std::vector<LateSwitch> feed(NodeId node, const NodeSample& sample);
  // Processes the state of the servers of jobs' striped volumes on the node; see ScratchMeter.
  void feed_volumes(NodeId node, TimePoint taken, const std::vector<VolumeSample>& volumes);
  // Notes that a task of the job has ended on the node, at a moment of which samples may still
  // come.
  void task_ended(NodeId node, JobId job, TimePoint at);
  // Notes that the node is gone or sends no more samples: its loads are unknown from `now` on.
  void interrupt(NodeId node, TimePoint now);
  void interrupt_all(TimePoint now);

  // Returns nullptr if there was no sample since the last interruption.
  [[nodiscard]] const NodeLoad* load(NodeId node) const;
  // Returns nullptr if there was never a sample.
  [[nodiscard]] const NodeTotals* totals(NodeId node) const;
  [[nodiscard]] std::vector<JobRun> runs(NodeId node, TimePoint from, TimePoint to) const;
  // Returns the runs at idle priority.
  [[nodiscard]] std::vector<JobRun> fills(NodeId node, TimePoint from, TimePoint to) const;

  // Returns nullptr if there was never a sample.
  [[nodiscard]] const ScratchMeter* scratch(NodeId node) const;

  // Overhead is the overhead of switching and the time in which a job was scheduled.
  struct Overhead {
    SwitchOverhead spent;
    Duration busy{0};

    [[nodiscard]] std::optional<double> share() const { return share_of(spent.total(), busy); }
  };

  // Returns the sums over kOverheadWindow, of the node or of all.
  [[nodiscard]] Overhead overhead(NodeId node) const;
  [[nodiscard]] Overhead overhead() const;
  // Returns the rate per node, over the nodes that switch.
  [[nodiscard]] double switches_per_second() const;

  // Returns the sums over all nodes since the first sample of each, for counters. Unlike the sum of
  // the totals they never go back when a daemon restarts. They leave out earlier work of the nodes,
  // which would look like a burst.
  [[nodiscard]] const NodeTotals& sum() const { return sum_; }

  [[nodiscard]] const SwitchWindow& switches() const { return switches_; }

  // Returns the traffic matrix, to which the owner of the attempts feeds samples.
  [[nodiscard]] PeerMeter& peers() { return peers_; }

  [[nodiscard]] const PeerMeter& peers() const { return peers_; }

 private:
  struct Totals {
    TimePoint at{};
    Overhead overhead;
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
  static void add_overhead(const Node& node, Overhead& sum);
  void note_totals(Node& node, TimePoint taken, const NodeTotals& totals);

  std::vector<Node> nodes_;
  SwitchWindow switches_;
  PeerMeter peers_;
  NodeTotals sum_;
};

}  // namespace score::monitor
