// Turns snapshots into samples, which give the state of a task between two full samples. Pure.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "scored/node/observe/snapshots.hpp"

namespace score::node {

// Holds totals since the start of the task, at a full sample.
struct TaskTotals {
  Duration used{0};  // processor time, as TaskSnapshot::used
  Duration ran{0};   // run time of its gang, as Switcher::RunTime
};

class TaskTrack {
 public:
  void mark(const monitor::TaskSample& sample, const TaskTotals& totals);
  // Sets the next mark, which is known before the snapshots up to it are turned into samples.
  void expect(const monitor::TaskSample& next, const TaskTotals& totals);
  // Must be called for the snapshots after the mark, in their order.
  [[nodiscard]] monitor::TaskSample at(const GangSnapshot& gang, const TaskSnapshot& task);

 private:
  void note_lately(Duration ran, Duration used, Duration waited);
  void note_state(const GangSnapshot& gang, const TaskSnapshot& task);
  [[nodiscard]] bool is_busy(Duration ran, Duration used) const;

  monitor::TaskSample before_, next_;
  TaskTotals at_mark_, at_next_;
  double part_ = 0;                                         // of the distance to the next mark
  Duration used_{0}, ran_{0};                               // at the last snapshot or mark
  monitor::TaskState awake_ = monitor::TaskState::Running;  // when its gang last ran
  // The recent time of its gang, and how much of it the task ran or waited for a processor.
  double lately_ = 0, used_lately_ = 0, waited_lately_ = 0;
};

}  // namespace score::node
