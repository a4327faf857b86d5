// Each node reports for its share of an attempt whether it is idle, and how many messages its
// contexts have sent and received. It reports a change after two equal checks in a row.
//
// A job is idle when all its shares are. If as many messages were received as sent, no message is
// in flight that could wake one of them, and the job is idle at once. A node's two checks are made
// at the same slice ends on all nodes of a gang, so they are the two waves of Mattern's four
// counters (1987). If the counts differ, a task sleeps although a message is waiting for it; then
// the job is idle after IdleLimits::unsettled. The first share that is busy makes the job busy.
//
// A job is deadlocked if every task waits for a message and no message is in flight, because no
// task can send one. That is decided after IdleLimits::deadlock_after without a change.
#include "gang/job/idleness.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

using base::Duration;
using base::TimePoint;

namespace {

constexpr std::uint32_t kMostRefusals = 6;  // after which the time no longer doubles

// Returns how long the condition has held by now, and records since when.
Duration held_for(std::optional<TimePoint>& since, bool holds, TimePoint now) {
  since = holds ? since.value_or(now) : std::optional<TimePoint>{};
  return holds ? now - *since : Duration{0};
}

}  // namespace

void Idleness::begin(std::size_t member_count) {
  reset();
  refusals_ = 0;
  shares_.assign(member_count, {});
}

void Idleness::reset() {
  idle_since_.reset();
  waits_since_.reset();
  judge_again_.reset();
  activity_ = JobActivity::Busy;
  forget_suspicion();
}

void Idleness::report(std::size_t member, const base::Activity& activity) {
  base::Activity& known = shares_[member];
  if (known.sent != activity.sent || known.received != activity.received) {
    waits_since_.reset();
    forget_suspicion();
  }
  known = activity;
}

void Idleness::confirm(std::uint32_t suspicion, bool is_deadlock, TimePoint now) {
  if (!is_suspect_ || suspicion != suspicions_) return;
  forget_suspicion();
  is_confirmed_ = is_deadlock;
  if (is_deadlock) return;
  refusals_ = std::min(refusals_ + 1, kMostRefusals);
  waits_since_ = now;
}

std::vector<base::TaskWait> Idleness::task_waits() const {
  std::vector<base::TaskWait> waits;
  for (const base::Activity& share : shares_) {
    if (share.idle) waits.insert(waits.end(), share.tasks.begin(), share.tasks.end());
  }
  return waits;
}

// A share that has ended can neither act nor send. The number of messages that it had sent is
// unknown, so the messages do not settle any more. A job that has not begun everywhere does not
// wait.
Idleness::Whole Idleness::whole(const Members& members) const {
  if (!members.not_begun().empty()) return {};
  Whole whole{true, true, true, false};
  std::uint64_t in_flight = 0;  // sent and not received, modulo 2^64
  for (std::size_t m = 0; m < members.count(); ++m) {
    if (members[m] == Member::Bare) continue;
    if (members.is_gone(m)) {
      whole.settled = false;
      whole.partial = true;
      continue;
    }
    const base::Activity& share = shares_[m];
    if (!share.idle) return {};
    whole.waits &= share.waits;
    in_flight += share.sent - share.received;
  }
  whole.settled &= in_flight == 0;
  return whole;
}

JobActivity Idleness::judge(const Members& members, TimePoint now, const IdleLimits& limits) {
  const Whole all = whole(members);
  const Duration idle = held_for(idle_since_, all.idle, now);
  const Duration waits = held_for(waits_since_, all.waits, now);
  judge_again_.reset();
  if (!all.waits) forget_suspicion();
  if (!all.idle) return activity_ = JobActivity::Busy;
  if (activity_ == JobActivity::Busy && !all.settled && idle < limits.unsettled) {
    judge_again_ = *idle_since_ + limits.unsettled;
    return activity_;
  }
  if (!all.waits || !(all.settled || all.partial)) return activity_ = JobActivity::Idle;
  const Duration after = limits.deadlock_after * (1U << refusals_);
  if (waits < after) {
    judge_again_ = *waits_since_ + after;
  } else if (!limits.is_heard) {
    judge_again_ = now + limits.deadlock_after;
  } else if (is_confirmed_ || !limits.must_confirm) {
    return activity_ = JobActivity::Deadlocked;
  } else if (!std::exchange(is_suspect_, true)) {
    ++suspicions_;
  }
  return activity_ = JobActivity::Idle;
}

}  // namespace score::gang
