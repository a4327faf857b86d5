#include "pmlib/fi/link/silence.hpp"

#include <algorithm>
#include <sched.h>

namespace score::pm::fi {

namespace {

constexpr unsigned kYieldEvery = 16;
// Chosen: a poll takes 50 to 300 ns, so a read takes at most 5 us, and only after a message.
constexpr unsigned kPollsAtOnce = 16;
constexpr unsigned kPollsAfterMessage = 64;
// Used where frames arrive in this process's own memory, so that a poll takes 25 ns. The MPI's own
// turn between two reads takes as long as several polls, and delays an answer that comes meanwhile.
constexpr unsigned kQuickPolls = 128;
constexpr std::uint64_t kAwayNs = 3'000;  // longer than the MPI's own part of a turn

}  // namespace

Silence::Silence(pm::Endpoint& pm) : pm_(pm) {
  const bool is_quick = pm.segment().header().device.kind == DeviceKind::Ethernet;
  polls_at_once_ = is_quick ? kQuickPolls : kPollsAtOnce;
  polls_after_message_ = is_quick ? kQuickPolls : kPollsAfterMessage;
}

void Silence::expect_more() {
  end();
  polls_left_ = polls_after_message_;
  gave_up_ns_ = 0;
}

// Yields the processor at times, because there may be more ranks than processors.
void Silence::yield_at_times() {
  if (empty_turns_ % kYieldEvery == 0) sched_yield();
}

unsigned Silence::polls_before_giving_up() {
  if (polls_left_ == 0) return 0;
  if (gave_up_ns_ != 0 && now_ns() - gave_up_ns_ > kAwayNs) polls_left_ = 0;
  const unsigned polls = std::min(polls_left_, polls_at_once_);
  polls_left_ -= polls;
  return polls;
}

void Silence::gave_up() {
  if (polls_left_ > 0) gave_up_ns_ = now_ns();
}

}  // namespace score::pm::fi
