// From glances to samples: what a task was at moments between two full ones. Pure.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "scored/node/observe/glances.hpp"

namespace score::node {

// At a full sample, since its start.
struct TaskTotals {
  Duration used{0};  // processor time, as TaskGlance::used
  Duration ran{0};   // its gang, as Switcher::RunTime
};

class TaskTrack {
 public:
  void mark(const monitor::TaskSample& sample, const TaskTotals& totals);
  // Where the next mark will be.
  void expect(const monitor::TaskSample& next, const TaskTotals& totals);
  // Glances after the mark, in their order.
  [[nodiscard]] monitor::TaskSample at(const GangGlance& gang, const TaskGlance& task);

 private:
  void note_lately(Duration ran, Duration used, Duration waited);
  void note_state(const GangGlance& gang, const TaskGlance& task);
  [[nodiscard]] bool is_busy(Duration ran, Duration used) const;

  monitor::TaskSample before_, next_;
  TaskTotals at_mark_, at_next_;
  double part_ = 0;                                         // of the way to the next mark
  Duration used_{0}, ran_{0};                               // at the last glance or mark
  monitor::TaskState awake_ = monitor::TaskState::Running;  // when its gang ran last
  // Of its gang's time lately, and how much of that it ran, or waited for a processor.
  double lately_ = 0, used_lately_ = 0, waited_lately_ = 0;
};

}  // namespace score::node
