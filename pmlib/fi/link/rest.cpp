#include "pmlib/fi/link/rest.hpp"

#include "pmlib/fi/link/poller.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::int64_t kBusyRestUs = 1'000;  // maximum, while something cannot be sent

thread_local Poller own_poller;

// MPICH takes only these words for true.
bool is_mpich_told_nolocal() {
  constexpr std::array<std::string_view, 7> kTrue{"1", "yes", "YES", "true", "TRUE", "on", "ON"};
  const char* const value = std::getenv("MPIR_CVAR_NOLOCAL");
  return value != nullptr && std::find(kTrue.begin(), kTrue.end(), value) != kTrue.end();
}

}  // namespace

void Rest::begin_poll() {
  own_poller.returns.begin_poll(now_ns(), thread_switches);
}

bool Rest::take(const std::function<bool()>& has_news) {
  Poller& poller = own_poller;
  poller.name_call(parts_.pm);
  pm::Endpoint::Sleep sleep;
  {
    Guard guard(parts_.lock);
    const std::int64_t most_us = longest_rest(poller);
    const WaitFacts facts = most_us > 0 ? facts_of(poller) : WaitFacts{};
    poller.peeks = peeks_;
    const bool may_ask = most_us > 0 && (poller.knows_call || facts.is_told_to_rest);
    const ContextState state = may_ask ? state_of(facts) : ContextState::Works;
    if (state == ContextState::Works) {
      if (most_us > 0) parts_.pm.end_silence();
      if (never_rests(facts)) may_rest_ = false;
      poller.returns.end_poll(now_ns());
      return false;
    }
    if (has_news()) return true;
    if (state == ContextState::Waits && std::exchange(poller.is_named, false)) note_wait(poller);
    parts_.pm.keep_resting(state);
    if (!parts_.wait_set.begin_sleep(most_us, state, sleep)) return true;
    poller.returns.note_sleep();
  }
  const bool is_woken = parts_.wait_set.wait(sleep);
  Guard guard(parts_.lock);
  parts_.wait_set.end_sleep(sleep, is_woken);
  if (poller.silence == parts_.silence.ended_count()) {
    poller.episode.rested(parts_.pm.now(), thread_used_us());
  }
  return true;
}

// Returns 0 if the thread must go on polling. While a different thread sleeps, each poll of this
// one would disturb it.
std::int64_t Rest::longest_rest(Poller& poller) {
  if (parts_.transfers.has_any() || parts_.wait_set.has_sleepers()) return 0;
  if (poller.rest != this || poller.silence != parts_.silence.ended_count()) {
    poller.rest = this;
    poller.silence = parts_.silence.ended_count();
    poller.start_anew(parts_.pm);
  }
  std::int64_t most_us = poller.episode.found_nothing(parts_.pm.now(), thread_used_us);
  if (const std::uint64_t us = poller.episode.take_polled_us(); us != 0) parts_.pm.add_polled(us);
  if (poller.episode.silence_us() == 0) {  // it did other work
    poller.forget_call();
    parts_.pm.end_silence();
  }
  return has_late_work() ? std::min(most_us, kBusyRestUs) : most_us;
}

WaitFacts Rest::facts_of(const Poller& poller) const {
  static const bool is_told = is_told_to_rest();
  static const bool is_near_by_pm = is_mpich_told_nolocal();
  const MpiCall& call = poller.call;
  const bool is_collective = call.wait == MpiWait::Collective;
  Awaited ignored;
  return {.has_near_ranks = has_near_ranks_,
          .is_near_by_pm = is_near_by_pm,
          .is_told_to_rest = is_told,
          .library = call.library,
          .call = call.wait,
          .may_others_call = call.may_others_call,
          .may_end_by_file = call.may_end_by_file,
          .has_receive = parts_.receiver.find_receive({}, ignored),
          .has_own_receive =
              is_collective && parts_.receiver.find_receive(own_receives(call.library), ignored),
          .has_request = parts_.requests.waiting().requests > 0,
          .has_peeked = peeks_ != poller.peeks,
          .has_late_work = has_late_work() || parts_.transfers.has_any(),
          .returns_at_once = poller.returns.are_quick()};
}

void Rest::note_wait(const Poller& poller) const {
  WaitNote note{.call = poller.call.name};
  Awaited awaited;
  if (parts_.receiver.find_receive({}, awaited)) {
    note.source = awaited.peer;
    note.bytes = awaited.bytes;
    note.tag = mpi_tag(poller.call.library, awaited.tag, awaited.ignore);
  }
  if (poller.call.wait == MpiWait::Collective) note.tag = WaitNote::kAny;
  parts_.pm.segment().write_wait_note(note);
}

}  // namespace score::pm::fi
