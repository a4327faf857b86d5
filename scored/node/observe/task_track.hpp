// Turns snapshots into samples: the state of a task between two full samples. Pure.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "scored/node/observe/snapshots.hpp"

namespace score::node {

// At a full sample, since its start.
struct TaskTotals {
  Duration used{0};  // processor time, as TaskSnapshot::used
  Duration ran{0};   // its gang, as Switcher::RunTime
};

class TaskTrack {
 public:
  void mark(const monitor::TaskSample& sample, const TaskTotals& totals);
  // The next mark, known before the snapshots up to it are turned into samples.
  void expect(const monitor::TaskSample& next, const TaskTotals& totals);
  // Snapshots after the mark, in their order.
  [[nodiscard]] monitor::TaskSample at(const GangSnapshot& gang, const TaskSnapshot& task);

 private:
  void note_lately(Duration ran, Duration used, Duration waited);
  void note_state(const GangSnapshot& gang, const TaskSnapshot& task);
  [[nodiscard]] bool is_busy(Duration ran, Duration used) const;

  monitor::TaskSample before_, next_;
  TaskTotals at_mark_, at_next_;
  double part_ = 0;                                         // of the way to the next mark
  Duration used_{0}, ran_{0};                               // at the last snapshot or mark
  monitor::TaskState awake_ = monitor::TaskState::Running;  // when its gang ran last
  // Of its gang's time lately, and how much of that it ran, or waited for a processor.
  double lately_ = 0, used_lately_ = 0, waited_lately_ = 0;
};

}  // namespace score::node
