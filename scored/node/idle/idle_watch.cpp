#include "scored/node/idle/idle_watch.hpp"

#include <algorithm>

namespace score::node {

namespace {

using namespace std::chrono_literals;

constexpr Duration kShortestSpan = 4ms;  // between checks at the ends of slices, in the attempt's
                                         // own time
// This replaces kShortestSpan for attempts that are idle but in the timetable because others are
// busy. It is also for attempts that were found crowded repeatedly: a check during which a
// different program ran is not reliable.
constexpr Duration kLongSpan = 40ms;
// A job that needed all of its time, or got little on a crowded node, is checked again after this
// many slices in which its first task continues like that, and otherwise at once. The number is
// small enough that one slice of rest shows in their sum.
constexpr int kTrustedSlices = 8;
constexpr Duration kCrowdedProbe = 5ms;  // least interval between checks of crowded attempts inside
                                         // a slice
constexpr int kMostMistakes = 15;
constexpr int kHeldLooks = 10;  // a held attempt runs a tenth of the time at most

}  // namespace

[[gnu::hot]] void IdleWatch::set_background(bool background, TimePoint now) {
  if (std::exchange(is_background_, background) == background) return;
  is_held_ = is_crowded_ = false;  // its waiting in the background does not count for its slices
  if (background || usage_ == nullptr) return;
  ask_leader();  // its time in the background is not part of its slice
  leader_part_ = Duration{0};
  if (is_stopped_) return;
  measure(now);
  went_on_ = since_ = now;
}

[[gnu::hot]] void IdleWatch::goes_on(TimePoint now) {
  if (!std::exchange(is_stopped_, false)) return;
  went_on_ = since_ = now;
}

[[gnu::hot]] void IdleWatch::stops(TimePoint now, const WatchPace& pace) {
  if (std::exchange(is_stopped_, true) || usage_ == nullptr) return;
  ran_ += now - since_;
  since_ = now;
  const Duration asked = ran_ - leader_ran_;  // since the last check or reading
  const bool is_due = asked >= (meter_.is_idle() ? kLongSpan : span_);
  meter_.set_slice(pace.slice);
  asks_again_ = is_background_ || pace.in_slice > Duration{0};
  if (is_background_ || (is_due && !is_leader_busy())) measure(now);
  has_stopped_ = true;
}

[[gnu::hot]] void IdleWatch::skip(Duration used, bool is_stopped) noexcept {
  if (usage_ == nullptr) return;
  if (used_ >= Duration{0}) used_ += used;
  polled_.forget();
  ask_leader();
  leader_part_ = Duration{0};
  waited_ = usage_->waited();
  unasked_ = Duration{0};
  has_stopped_ = is_stopped;
}

[[gnu::hot]] bool IdleWatch::ask_leader() {
  leader_part_ = Duration{0};
  const pid_t leader = leader_.load(std::memory_order_relaxed);
  const Duration total = leader != 0 ? usage_->used_by(leader) : Duration{-1};
  if (total < Duration{0}) return false;
  const Duration own = std::max(total - polled_.of_first(), leader_used_);
  leader_part_ = own - std::exchange(leader_used_, own);
  return true;
}

[[gnu::hot]] bool IdleWatch::is_leader_busy() {
  if (!ask_leader()) return false;
  const Duration used = leader_part_;
  const Duration ran = ran_ - std::exchange(leader_ran_, ran_);
  if (trust_ == 0) return false;
  const bool is_whole = meter_.is_whole(ran, used);
  const bool goes_on = is_whole || (is_crowded_ && meter_.is_use(ran, used));
  is_doubted_ = !goes_on && !is_crowded_;  // it needed all of its time until now
  --trust_;
  if (!goes_on || trust_ == 0) return false;
  if (is_whole) {  // it got all the time that it needed
    is_crowded_ = false;
    span_ = kShortestSpan;
  }
  suspect(false, true);
  return true;
}

// An attempt that did not need the end of its time is checked again soon. If it only waits for
// other processes at times, the suspicion is wrong, and becomes less and less frequent.
[[gnu::hot]] void IdleWatch::suspect(bool is_quiet, bool is_whole) {
  const bool was_suspected = std::exchange(is_suspected_, is_quiet);
  if (is_quiet || is_whole) {
    mistakes_ = spared_ = 0;
  } else if (was_suspected) {
    spared_ = mistakes_ = std::min(2 * mistakes_ + 1, kMostMistakes);
  } else if (spared_ > 0) {
    --spared_;
  } else {
    is_suspected_ = true;
  }
}

// The kernel adds the time of a running task to its cgroup only at its ticks, some milliseconds
// apart, but the clock of the leader and the polled time in the contexts are exact. So the use
// without polling may seem to shrink. It counts again once it exceeds its maximum so far.
[[gnu::hot]] void IdleWatch::measure(TimePoint now) {
  if (usage_ == nullptr) return;
  const Duration all = used_at(now);
  if (all < Duration{0}) return;
  const Duration ran = ran_ + (now - since_);
  const PolledTime::Reading polled = polled_.read(ran);
  const Duration used = std::max(all - polled.used, used_);
  const Duration at_least = std::exchange(leader_part_, Duration{0});
  since_ = now;
  if (used_ >= Duration{0} && ran > Duration{0} &&
      !judge(ran, std::max(used - used_, at_least), polled.rests)) {
    ran_ = leader_ran_ = ran;  // the next check covers this time too
    return;
  }
  used_ = used;
  ran_ = leader_ran_ = Duration{0};
  idle_.store(meter_.is_idle(), std::memory_order_release);
}

// Assumes that the attempt's waiting was spread evenly since it was last read.
[[gnu::hot]] Duration IdleWatch::ask_waited(Duration ran) {
  const Duration total = usage_->waited();
  const Duration whole = total - std::exchange(waited_, total);
  const double part = std::chrono::duration<double>(ran) / std::exchange(unasked_, Duration{0});
  return std::min(std::chrono::duration_cast<Duration>(whole * part), ran);
}

// Reads the time that the attempt waited, but only if it did not use all of its time.
//
// A task needs the processor to stop. Usually its successor has the processor by then, and the
// kernel counts up to a whole slice as waiting time, although the task did not wait. So only
// waiting since the attempt was continued makes it crowded. Tasks that rest need the processor only
// for the next poll, however long they waited for it.
[[gnu::hot]] bool IdleWatch::judge(Duration ran, Duration used, bool rests) {
  const bool is_doubted = std::exchange(is_doubted_, false);
  Duration waited{0};
  bool is_known = true;
  unasked_ += ran;
  if (!rests && !meter_.is_whole(ran, used)) {
    waited = ask_waited(ran);
    const bool has_stopped = std::exchange(has_stopped_, false);
    if (has_stopped && asks_again_ && !is_crowded_ && meter_.is_crowded(ran, waited)) {
      if (!meter_.is_use(ran, used)) {
        is_suspected_ = true;
        unasked_ = -ran;  // the time of the next check begins with this one
        return false;
      }
      waited = Duration{0};
      is_known = false;
    }
  }
  meter_.add(ran, used, waited);
  if (is_known) fill_meter_.add(ran, used + waited);
  const bool wants_all = meter_.is_whole(ran, used + waited);
  const bool has_rested = is_doubted || (wanted_all_ && !wants_all);
  if (has_rested) meter_.doubt();
  suspect(!meter_.has_used(), wants_all && !is_doubted);
  wanted_all_ = wants_all;
  const bool is_busy = wants_all || (meter_.has_used() && meter_.is_crowded(ran, waited));
  is_crowded_ = is_busy && !meter_.is_whole(ran, used);
  span_ = is_crowded_ ? std::clamp(2 * span_, kShortestSpan, kLongSpan) : kShortestSpan;
  trust_ = is_busy && !is_doubted ? kTrustedSlices : 0;
  return true;
}

[[gnu::hot]] bool IdleWatch::looks_soon(const WatchPace& pace) const {
  return is_crowded_ ? meter_.may_be_idle() && pace.in_slice >= kCrowdedProbe : is_suspected_;
}

[[gnu::hot]] std::optional<TimePoint> IdleWatch::next_look(const WatchPace& pace) const {
  if (usage_ == nullptr) return std::nullopt;
  if (is_held_) return held_until_;
  if (is_stopped_) return std::nullopt;
  if (is_background_) return since_ + pace.background;
  if (pace.in_slice > Duration{0} && !meter_.is_idle()) {
    if (looks_soon(pace)) return since_ + pace.in_slice;
    const TimePoint middle = went_on_ + pace.middle;
    if (!is_crowded_ && since_ < middle) return middle;
  }
  return since_ + pace.slow;
}

void IdleWatch::look(TimePoint now, const WatchPace& pace) {
  if (is_held_) {
    is_held_ = false;
    return;
  }
  ran_ += now - since_;
  since_ = now;
  meter_.set_slice(pace.slice);
  asks_again_ = is_background_ || pace.in_slice > Duration{0};
  if (is_background_) ask_leader();
  if (is_background_ || !is_leader_busy()) measure(now);
  is_held_ = is_background_ && pace.is_shared && meter_.has_used();
  is_stopped_ = is_held_;
  has_stopped_ = has_stopped_ || is_held_;
  if (is_held_) held_until_ = now + kHeldLooks * pace.background;
}

}  // namespace score::node
