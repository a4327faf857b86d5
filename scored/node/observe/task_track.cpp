// A snapshot has one exact total, the processor time. The growth of the other totals is known only
// between two full samples, so it is distributed in proportion to the processor time.
#include "scored/node/observe/task_track.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kLeastTurn = 1ms;  // shorter turns are not meaningful
constexpr Duration kLately = 1s;
constexpr int kCrowded = 8;  // the processor is contended if waiting is more than this part

bool is_awake(monitor::TaskState state) {
  return state != monitor::TaskState::Frozen && state != monitor::TaskState::Ended;
}

bool is_computing(monitor::TaskState state) {
  return state == monitor::TaskState::Running;
}

// Returns which part of the distance from one total to a later one has been covered.
double part_of(Duration now, Duration from, Duration to) {
  if (to <= from) return 0;
  const auto way = static_cast<double>((now - from).count());
  return std::clamp(way / static_cast<double>((to - from).count()), 0.0, 1.0);
}

Duration between(Duration from, Duration to, double part) {
  const auto grown = static_cast<double>(std::max(to - from, Duration{0}).count());
  return from + Duration(std::llround(grown * part));
}

}  // namespace

void TaskTrack::mark(const monitor::TaskSample& sample, const TaskTotals& totals) {
  before_ = sample;
  at_mark_ = totals;
  used_ = totals.used;
  ran_ = totals.ran;
  part_ = 0;
  if (!is_awake(sample.state)) return;
  awake_ = sample.state;
  if (lately_ == 0) note_lately(kLately / 2, is_computing(awake_) ? kLately / 2 : 0ns, 0ns);
}

void TaskTrack::expect(const monitor::TaskSample& next, const TaskTotals& totals) {
  next_ = next;
  at_next_ = totals;
  const Duration ran = totals.ran - at_mark_.ran;
  if (ran < kLeastTurn) return;
  const Duration used = std::max(totals.used - at_mark_.used, 0ns);
  const Duration waited = std::max(next.waited - before_.waited, 0ns);
  if (lately_ == 0) note_lately(kLately / 2, kLately / 2, 0ns);
  // The task was seen asleep, and no value contradicts that, so its earlier activity is over.
  if (next.state == monitor::TaskState::Blocked && 4 * (used + waited) < ran) {
    used_lately_ = waited_lately_ = 0;
  }
  note_lately(ran, std::min(used, 4 * ran), std::min(waited, 4 * ran));
}

monitor::TaskSample TaskTrack::at(const GangSnapshot& gang, const TaskSnapshot& task) {
  part_ = std::max(part_, part_of(task.used, at_mark_.used, at_next_.used));
  note_state(gang, task);
  monitor::TaskSample sample = next_;
  sample.user = between(before_.user, next_.user, part_);
  sample.system = between(before_.system, next_.system, part_);
  // A task that has to wait does so whether or not it gets a core in this slice.
  const double ran = part_of(gang.ran, at_mark_.ran, at_next_.ran);
  sample.waited = between(before_.waited, next_.waited, ran);
  const auto turns = next_.switches - std::min(before_.switches, next_.switches);
  sample.switches = before_.switches +
                    static_cast<std::uint64_t>(std::llround(static_cast<double>(turns) * part_));
  sample.pm = task.pm;
  sample.state = gang.runs || gang.fills ? awake_ : monitor::TaskState::Frozen;
  return sample;
}

void TaskTrack::note_lately(Duration ran, Duration used, Duration waited) {
  const auto count = [](Duration duration) { return static_cast<double>(duration.count()); };
  const double part = std::max(0.0, 1.0 - count(ran) / count(kLately));
  lately_ = lately_ * part + count(ran);
  used_lately_ = used_lately_ * part + count(used);
  waited_lately_ = waited_lately_ * part + count(waited);
}

// The task's use of a slice decides, unless it has to wait for a processor. A task on a crowded
// machine may get none in a whole slice, and its waiting time is counted when it gets one. In that
// case its activity over several slices decides.
bool TaskTrack::is_busy(Duration ran, Duration used) const {
  const bool is_crowded = kCrowded * waited_lately_ > lately_;
  return is_crowded ? 2 * (used_lately_ + waited_lately_) >= lately_ : 2 * used >= ran;
}

void TaskTrack::note_state(const GangSnapshot& gang, const TaskSnapshot& task) {
  const Duration ran = gang.ran - ran_;
  if (ran < kLeastTurn) return;
  const bool computes = is_busy(ran, task.used - used_);
  ran_ = gang.ran;
  used_ = task.used;
  if (awake_ == monitor::TaskState::Stopped && !computes) return;
  awake_ = computes ? monitor::TaskState::Running : monitor::TaskState::Blocked;
  if (task.pm && task.pm->waits) awake_ = monitor::TaskState::WaitsInPm;
}

}  // namespace score::node
