// A glance knows one total exactly, the processor time. Of the others only their growth between two
// full samples is known, and it is shared out as the processor time was: who used none has neither
// switched nor spent any in the system.
#include "scored/node/glance_samples.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kLeastTurn = 1ms;  // shorter ones say nothing
constexpr Duration kLately = 1s;

Duration between(Duration from, Duration to, double part) {
  const auto grown = static_cast<double>(std::max(to - from, Duration{0}).count());
  return from + Duration(std::llround(grown * part));
}

}  // namespace

void TaskTrack::mark(const monitor::TaskSample& sample, Duration used, Duration ran) {
  before_ = sample;
  used_before_ = used_ = used;
  ran_ = ran;
  part_ = 0;
  const bool says_state =
      sample.state != monitor::TaskState::Frozen && sample.state != monitor::TaskState::Ended;
  if (!says_state) return;
  awake_ = sample.state;
  if (lately_ == 0)
    note_busy(kLately / 2, awake_ == monitor::TaskState::Running ? kLately / 2 : 0ns);
}

void TaskTrack::expect(const monitor::TaskSample& next, Duration next_used) {
  next_ = next;
  next_used_ = next_used;
}

monitor::TaskSample TaskTrack::at(const GangGlance& gang, const TaskGlance& task) {
  if (next_used_ > used_before_) {
    const double part = static_cast<double>((task.used - used_before_).count()) /
                        static_cast<double>((next_used_ - used_before_).count());
    part_ = std::clamp(part, part_, 1.0);
  }
  note_state(gang, task);
  monitor::TaskSample sample = next_;
  sample.user = between(before_.user, next_.user, part_);
  sample.system = between(before_.system, next_.system, part_);
  const auto turns = next_.switches - std::min(before_.switches, next_.switches);
  sample.switches = before_.switches +
                    static_cast<std::uint64_t>(std::llround(static_cast<double>(turns) * part_));
  sample.pm = task.pm;
  sample.state = gang.runs ? awake_ : monitor::TaskState::Frozen;
  return sample;
}

// A task on a crowded machine may get no processor in a whole slice, and what it waited is counted
// when it gets one; so what it does is what it did over some slices.
void TaskTrack::note_busy(Duration ran, Duration busy) {
  const double part = std::max(0.0, 1.0 - static_cast<double>(ran.count()) / kLately.count());
  lately_ = lately_ * part + static_cast<double>(ran.count());
  busy_ = busy_ * part + static_cast<double>(busy.count());
}

void TaskTrack::note_state(const GangGlance& gang, const TaskGlance& task) {
  const Duration ran = gang.ran - ran_;
  if (ran < kLeastTurn) return;
  if (lately_ == 0) note_busy(kLately / 2, kLately / 2);
  const Duration waited = waited_ < Duration{0} ? Duration{0} : task.waited - waited_;
  const Duration used = task.used - used_;
  note_busy(ran, std::clamp(used + waited, Duration{0}, 4 * ran));
  ran_ = gang.ran;
  used_ = task.used;
  waited_ = task.waited;
  const bool is_busy = 2 * busy_ >= lately_;
  if (awake_ == monitor::TaskState::Stopped && !is_busy) return;
  awake_ = is_busy ? monitor::TaskState::Running : monitor::TaskState::Blocked;
  if (task.pm && task.pm->waits) awake_ = monitor::TaskState::WaitsInPm;
}

}  // namespace score::node
