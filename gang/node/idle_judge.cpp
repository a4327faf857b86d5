#include "gang/node/idle_judge.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

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
constexpr int kHeldChecks = 10;  // a held attempt runs a tenth of the time at most
// A task that polls needs a tick of the kernel to get the processor, and some polls. Between two
// glimpses it is held for at least kLeastHold, so that it costs others 5 % of their time at most.
constexpr Duration kGlimpse = 4ms;
constexpr Duration kLeastHold = 40ms;

}  // namespace

[[gnu::hot]] void IdleSuspicion::note(bool is_quiet, bool is_whole) {
  const bool was_raised = std::exchange(is_raised_, is_quiet);
  if (is_quiet || is_whole) {
    mistakes_ = spared_ = 0;
  } else if (was_raised) {
    spared_ = mistakes_ = std::min(2 * mistakes_ + 1, kMostMistakes);
  } else if (spared_ > 0) {
    --spared_;
  } else {
    is_raised_ = true;
  }
}

[[gnu::hot]] bool IdleJudge::runs() const {
  return state_ == IdleState::Turn || state_ == IdleState::Background;
}

[[gnu::hot]] bool IdleJudge::is_crowded() const {
  return demand_ == Demand::Shared || demand_ == Demand::Starved;
}

[[gnu::hot]] IdleAction IdleJudge::on(IdleEvent event, TimePoint now, const WatchPace& pace) {
  const IdleStep* step = idle_step(state_, event);
  if (step == nullptr) return IdleAction::None;
  state_ = step->to;
  if (step->action != IdleAction::None) {
    const Duration more = now - std::exchange(times_.since, now);
    times_.ran += more;
    leader_.unread += more;
  }
  const bool is_change = event == IdleEvent::ToBackground || event == IdleEvent::ToTurns;
  if (is_change) end_crowding();  // waiting in the background does not count for its slices
  if (event == IdleEvent::ToTurns || event == IdleEvent::Continue) {
    times_.went_on = times_.since = now;
  }
  if (step->action == IdleAction::None) return IdleAction::None;
  check_ = {.is_probe = step->action == IdleAction::Probe};
  check_.is_repeated = !check_.is_probe || pace.in_slice > Duration{0};
  if (is_change) return step->action;
  check_.is_shared = pace.is_shared;
  check_.pause = pace.background;
  times_.held_until = now + kHeldChecks * pace.background;
  meter_.set_slice(pace.slice);
  const bool is_due = leader_.unread >= (meter_.is_idle() ? kLongSpan : span_);
  if (state_ == IdleState::Stopped && !is_due) return finish();
  return step->action;
}

// Returns the time that the leader has used since it was read before.
[[gnu::hot]] Duration IdleJudge::read_leader(Duration total) {
  const Duration own = std::max(total, leader_.used);
  return own - std::exchange(leader_.used, own);
}

[[gnu::hot]] IdleAction IdleJudge::take_leader(Duration total) {
  const Duration ran = std::exchange(leader_.unread, Duration{0});
  check_.least = read_leader(total);
  const bool is_known = total >= Duration{0};
  if (check_.is_probe && is_known && goes_on_as_before(ran, check_.least)) return finish();
  return IdleAction::ReadUsage;
}

[[gnu::hot]] bool IdleJudge::goes_on_as_before(Duration ran, Duration used) {
  if (leader_.trust == 0) return false;
  const bool is_whole = meter_.is_whole(ran, used);
  const bool goes_on = is_whole || (is_crowded() && meter_.is_use(ran, used));
  check_.is_doubted = !goes_on && !is_crowded();  // it needed all of its time until now
  --leader_.trust;
  if (!goes_on || leader_.trust == 0) return false;
  if (is_whole) {  // it got all the time that it needed
    end_crowding();
    span_ = kShortestSpan;
  }
  suspicion_.note(false, true);
  return true;
}

[[gnu::hot]] void IdleJudge::end_crowding() {
  if (demand_ == Demand::Shared) demand_ = Demand::Part;
  if (demand_ == Demand::Starved) demand_ = Demand::Whole;
}

// The kernel adds the time of a running task to its cgroup only at its ticks, some milliseconds
// apart, but the clock of the leader and the polled time in the contexts are exact. So the use
// without polling may seem to shrink. It counts again once it exceeds its maximum so far.
//
// Tasks that rest need the processor only for the next poll, however long they waited for it.
[[gnu::hot]] IdleAction IdleJudge::take_usage(Duration total, Duration polled, bool rests) {
  if (total < Duration{0}) return finish();
  check_.total = std::max(total - polled, used_);
  if (used_ < Duration{0} || times_.ran <= Duration{0}) return accept();
  check_.used = std::max(check_.total - used_, check_.least);
  waiting_.unread += times_.ran;
  if (!rests && !meter_.is_whole(times_.ran, check_.used)) return IdleAction::ReadWaited;
  return judge(Duration{0}, true);
}

// Assumes that the attempt's waiting was spread evenly since it was last read.
//
// A task needs the processor to stop. Usually its successor has the processor by then, and the
// kernel counts up to a whole slice as waiting time, although the task did not wait. So only
// waiting since the attempt was continued makes it crowded.
[[gnu::hot]] IdleAction IdleJudge::take_waited(Duration total) {
  const Duration ran = times_.ran;
  const Duration whole = total - std::exchange(waiting_.total, total);
  const double part =
      std::chrono::duration<double>(ran) / std::exchange(waiting_.unread, Duration{0});
  const Duration waited = std::min(std::chrono::duration_cast<Duration>(whole * part), ran);
  const bool is_known = !std::exchange(waiting_.has_stopped, false) || !check_.is_repeated ||
                        is_crowded() || !meter_.is_crowded(ran, waited);
  if (is_known || meter_.is_use(ran, check_.used)) {
    return judge(is_known ? waited : Duration{0}, is_known);
  }
  suspicion_.raise();
  waiting_.unread = -ran;  // the next check covers this time too
  return finish();
}

[[gnu::hot]] IdleAction IdleJudge::judge(Duration waited, bool is_known) {
  const Duration ran = times_.ran;
  const Duration wanted = check_.used + waited;
  const bool wanted_all = demand_ == Demand::Whole || demand_ == Demand::Starved;
  const bool wants_all = meter_.is_whole(ran, wanted);
  meter_.add(ran, check_.used, waited);
  if (is_known) fill_meter_.add(ran, wanted);
  if (check_.is_doubted || (wanted_all && !wants_all)) meter_.doubt();
  suspicion_.note(!meter_.has_used(), wants_all && !check_.is_doubted);
  const bool is_busy = wants_all || (meter_.has_used() && meter_.is_crowded(ran, waited));
  if (is_busy && !meter_.is_whole(ran, check_.used)) {
    demand_ = wants_all ? Demand::Starved : Demand::Shared;
    span_ = std::clamp(2 * span_, kShortestSpan, kLongSpan);
  } else {
    demand_ = wants_all ? Demand::Whole : Demand::Part;
    span_ = kShortestSpan;
  }
  leader_.trust = is_busy && !check_.is_doubted ? kTrustedSlices : 0;
  return accept();
}

[[gnu::hot]] IdleAction IdleJudge::accept() {
  used_ = check_.total;
  times_.ran = Duration{0};
  return finish();
}

[[gnu::hot]] IdleAction IdleJudge::finish() {
  const bool is_use = check_.is_shared && meter_.has_used();
  const bool is_glimpse = check_.is_shared && polls_ && !is_use;
  if (state_ == IdleState::Background && (is_use || is_glimpse)) {
    on(IdleEvent::Use, times_.since, {});
    if (is_glimpse) times_.held_until = times_.since + std::max(check_.pause, kLeastHold);
  }
  waiting_.has_stopped = waiting_.has_stopped || !runs();
  return IdleAction::None;
}

[[gnu::hot]] void IdleJudge::skip(Duration used, Duration leader, Duration waited,
                                  bool is_stopped) {
  if (used_ >= Duration{0}) used_ += used;
  read_leader(leader);
  waiting_ = {.total = waited, .has_stopped = is_stopped};
}

[[gnu::hot]] bool IdleJudge::checks_soon(const WatchPace& pace) const {
  if (!is_crowded()) return suspicion_.is_raised();
  return meter_.may_be_idle() && pace.in_slice >= kCrowdedProbe;
}

[[gnu::hot]] std::optional<TimePoint> IdleJudge::next_check(const WatchPace& pace) const {
  if (is_held()) return times_.held_until;
  if (!runs()) return std::nullopt;
  if (is_background()) {
    return times_.since + (polls_ ? std::min(kGlimpse, pace.background) : pace.background);
  }
  if (pace.in_slice > Duration{0} && !meter_.is_idle()) {
    if (checks_soon(pace)) return times_.since + pace.in_slice;
    const TimePoint middle = times_.went_on + pace.middle;
    if (!is_crowded() && times_.since < middle) return middle;
  }
  return times_.since + pace.slow;
}

}  // namespace score::gang
