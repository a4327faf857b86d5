// From glances to samples: what a task was at moments between two full ones. Pure.
#pragma once

#include "monitor/samples.hpp"
#include "scored/node/glances.hpp"

namespace score::node {

class TaskTrack {
 public:
  // Of `sample`, which was full, it had used so much, and its gang had run so long.
  void mark(const monitor::TaskSample& sample, Duration used, Duration ran);
  // Where the next mark will be.
  void expect(const monitor::TaskSample& next, Duration next_used);
  // Glances after the mark, in their order.
  [[nodiscard]] monitor::TaskSample at(const GangGlance& gang, const TaskGlance& task);

 private:
  void note_busy(Duration ran, Duration busy);
  void note_state(const GangGlance& gang, const TaskGlance& task);

  monitor::TaskSample before_, next_;
  Duration used_before_{0}, next_used_{0};
  double part_ = 0;  // of the way to the next mark
  // At the last glance or mark.
  Duration used_{0}, waited_{-1}, ran_{0};
  monitor::TaskState awake_ = monitor::TaskState::Running;  // when its gang ran last
  // Of its gang's time lately, and how much of that it ran or could have.
  double lately_ = 0, busy_ = 0;
};

}  // namespace score::node
