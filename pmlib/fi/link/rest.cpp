#include "pmlib/fi/link/rest.hpp"

#include "pmlib/core/vain_polls.hpp"
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

// Returns true if nothing but messages, by whatever means, can end the call.
bool ends_by_messages(const MpiCall& call) {
  if (call.wait == MpiWait::None || call.may_others_call) return false;
  return call.wait != MpiWait::Request || !call.may_end_by_file;
}

}  // namespace

void Rest::begin_poll() const {
  if (never_sleeps_ || own_poller.untimed > 0 || own_poller.is_published) return;
  own_poller.returns.begin_poll(now_ns(), thread_switches);
}

bool Rest::take(const std::function<bool()>& has_news) {
  Poller& poller = own_poller;
  if (poller.silence != parts_.silence.ended_count()) poller.untimed = 0;
  const bool is_timed =
      !never_sleeps_ && !poller.is_published && (poller.untimed == 0 || --poller.untimed == 0);
  if (is_timed && try_rest(poller, has_news)) return true;
  if (never_sleeps_ || poller.untimed > 0 || poller.is_published) look(poller);
  return false;
}

// Returns false if the thread may not sleep now.
bool Rest::try_rest(Poller& poller, const std::function<bool()>& has_news) {
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
      never_sleeps_ = never_rests(facts);
      if (may_ask) poller.untimed = Poller::kUntimedPolls;
      poller.returns.end_poll(now_ns());
      return false;
    }
    if (has_news()) return true;
    if (state == ContextState::Waits && std::exchange(poller.is_named, false)) note_wait(poller);
    poller.is_published = false;
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
    poller.is_published = false;
    parts_.pm.end_silence();
  }
  return has_late_work() ? std::min(most_us, kBusyRestUs) : most_us;
}

// Looks at the polls of a thread that may not sleep.
void Rest::look(Poller& poller) {
  if (!poller.vain.count_poll()) return;
  VainPolls::Answer answer{};
  {
    Guard guard(parts_.lock);
    if (poller.vain_rest != this || poller.vain_silence != parts_.silence.ended_count()) {
      poller.vain_rest = this;
      poller.vain_silence = parts_.silence.ended_count();
      poller.is_published = false;  // whatever ended the silence has withdrawn it
      poller.vain.start_anew();
    }
    answer = poller.vain.look(now_ns() / 1000, thread_used_us(), thread_switches());
  }
  if (!poller.vain.is_watching()) poller.call_return.stop();
  if (answer == VainPolls::Answer::Check) return check_watched_call(poller);
  if (answer != VainPolls::Answer::Watch) return;
  poller.call = find_mpi_call();
  const bool is_watched = ends_by_messages(poller.call) && poller.call.returns_to != nullptr &&
                          poller.call_return.watch(poller.call.returns_to);
  is_watched ? poller.vain.watching() : poller.vain.returned();
}

void Rest::check_watched_call(Poller& poller) {
  const bool has_returned = poller.call_return.has_returned();
  has_returned ? poller.vain.returned() : poller.vain.still_there();
  if (has_returned) poller.call_return.stop();
  Guard guard(parts_.lock);
  const bool is_busy = has_late_work() || parts_.transfers.has_any();
  publish(poller, poller.vain.are_vain() && !is_busy);
}

void Rest::publish(Poller& poller, bool is_vain) const {
  const std::uint64_t polled_us = is_vain ? poller.vain.take_polled_us() : 0;
  // Until now the episode has counted the polls of a thread that may sleep at times.
  if (never_sleeps_ || poller.is_published) parts_.pm.add_polled(polled_us);
  if (std::exchange(poller.is_published, is_vain) == is_vain) return;
  if (!is_vain) return parts_.pm.end_silence();
  const Segment& context = parts_.pm.segment();
  context.write_wait_note({.call = poller.call.name});
  context.header().rested_us.store(kPollsInVain, std::memory_order_relaxed);
  parts_.pm.keep_resting(ContextState::Waits);
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
