// An MPI does not sleep: it reads its completion queue while it waits. A thread that has read in
// vain for long sleeps inside of a read, for a moment and until anything arrives. Meanwhile it
// holds no lock of the link's: other threads send and receive, and end the sleep.
#include "pmlib/fi/link/link.hpp"
#include "pmlib/fi/link/poller.hpp"
#include "pmlib/fi/link/rest_rule.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
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

void Link::begin_poll() {
  own_poller.returns.begin_poll(now_ns(), thread_switches);
}

bool Link::rest(const std::function<bool()>& has_news) {
  Poller& poller = own_poller;
  poller.name_call(*pm_);
  pm::Endpoint::Sleep sleep;
  {
    Guard guard(*this);
    const std::int64_t most_us = longest_rest(poller);
    const WaitFacts facts = most_us > 0 ? facts_of(poller) : WaitFacts{};
    poller.peeks = peeks_;
    const bool may_ask = most_us > 0 && (poller.knows_call || facts.is_told_to_rest);
    const ContextState state = may_ask ? state_of(facts) : ContextState::Works;
    if (state == ContextState::Works) {
      if (most_us > 0) pm_->end_silence();
      if (never_rests(facts)) may_rest_ = false;
      poller.returns.end_poll(now_ns());
      return false;
    }
    if (has_news()) return true;
    if (state == ContextState::Waits && std::exchange(poller.is_named, false)) note_wait(poller);
    pm_->keep_resting(state);
    if (pm_->prepare_sleep(most_us, state, sleep) != 0) return true;
    is_armed_ = true;
    add_sleeper();
    poller.returns.note_sleep();
  }
  std::array<pollfd, 3> news{sleep.news[0], sleep.news[1], pollfd{wake_fd_, POLLIN, 0}};
  sleep_until_event(news, sleep.timeout_us);
  std::copy_n(news.begin(), sleep.news.size(), sleep.news.begin());
  Guard guard(*this);
  end_rest(poller, sleep, news[2].revents != 0);
  return true;
}

// Returns 0 if the thread must go on polling. While a different thread sleeps, each poll of this
// one would disturb it.
std::int64_t Link::longest_rest(Poller& poller) {
  if (has_transfers() || has_sleepers()) return 0;
  if (poller.link != this || poller.silence != silence_) {
    poller.link = this;
    poller.silence = silence_;
    poller.start_anew(*pm_);
  }
  std::int64_t most_us = poller.episode.found_nothing(pm_->now(), thread_used_us);
  if (const std::uint64_t us = poller.episode.take_polled_us(); us != 0) pm_->add_polled(us);
  if (poller.episode.silence_us() == 0) {  // it did other work
    poller.forget_call();
    pm_->end_silence();
  }
  const bool is_impatient =
      !waiting_peers_.empty() || (directory_ != nullptr && directory_->has_unready());
  return is_impatient ? std::min(most_us, kBusyRestUs) : most_us;
}

void Link::end_rest(Poller& poller, const pm::Endpoint::Sleep& sleep, bool is_woken) {
  remove_sleeper();
  if (std::exchange(is_armed_, false)) pm_->end_sleep(sleep);  // otherwise another thread has
  if (is_woken && !has_sleepers()) {
    std::uint64_t drained = 0;
    [[maybe_unused]] const ssize_t n = read(wake_fd_, &drained, sizeof drained);
  }
  if (poller.silence == silence_) poller.episode.rested(pm_->now(), thread_used_us());
}

bool Link::find_receive(const TagFilter& filter, Awaited& awaited) const {
  return std::any_of(ports_.begin(), ports_.end(), [&](const Port* port) {
    return port != nullptr && port->find_oldest(filter, awaited);
  });
}

WaitFacts Link::facts_of(const Poller& poller) const {
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
          .has_receive = find_receive({}, ignored),
          .has_own_receive = is_collective && find_receive(own_receives(call.library), ignored),
          .has_request = live_requests_ > 0,
          .has_peeked = peeks_ != poller.peeks,
          .has_late_work = has_late_work(),
          .returns_at_once = poller.returns.are_quick()};
}

void Link::note_wait(const Poller& poller) const {
  WaitNote note{.call = poller.call.name};
  Awaited awaited;
  if (find_receive({}, awaited)) {
    note.source = awaited.peer;
    note.bytes = awaited.bytes;
    note.tag = mpi_tag(poller.call.library, awaited.tag, awaited.ignore);
  }
  if (poller.call.wait == MpiWait::Collective) note.tag = WaitNote::kAny;
  pm_->segment().write_wait_note(note);
}

}  // namespace score::pm::fi
