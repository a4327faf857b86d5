// MPIs never sleep: whatever they wait for, they read their completion queues. A thread that has
// read in vain for long sleeps inside of a read, for a moment and until anything comes. Meanwhile
// it holds no lock of the link's: other threads send and receive, and end the sleep.
#include "pmlib/fi/link/link.hpp"
#include "pmlib/fi/link/poller.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::int64_t kBusyRestUs = 1'000;  // at most, while something cannot be sent

}  // namespace

bool Link::rest(const std::function<bool()>& has_news) {
  thread_local Poller poller;
  poller.name_call(*pm_);
  pm::Endpoint::Sleep sleep;
  {
    Guard guard(*this);
    const std::int64_t most_us = longest_rest(poller);
    if (most_us == 0) return false;
    if (has_news()) return true;
    const ContextState state = state_of_rest(poller);
    pm_->keep_resting(state);
    if (pm_->prepare_sleep(most_us, state, sleep) != 0) return true;
    is_armed_ = true;
    add_sleeper();
  }
  std::array<pollfd, 3> news{sleep.news[0], sleep.news[1], pollfd{wake_fd_, POLLIN, 0}};
  sleep_until_news(news, sleep.timeout_us);
  std::copy_n(news.begin(), sleep.news.size(), sleep.news.begin());
  Guard guard(*this);
  end_rest(poller, sleep, news[2].revents != 0);
  return true;
}

// 0: the thread goes on. Who sleeps already is disturbed by each look of this thread.
std::int64_t Link::longest_rest(Poller& poller) {
  if (has_transfers() || has_sleepers()) return 0;
  if (poller.link != this || poller.silence != silence_) {
    poller.link = this;
    poller.silence = silence_;
    poller.start_anew(*pm_);
  }
  std::int64_t most_us = poller.episode.found_nothing(pm_->now(), thread_used_us);
  if (const std::uint64_t us = poller.episode.take_polled_us(); us != 0) pm_->add_polled(us);
  if (poller.episode.silence_us() == 0) {  // it did other things
    poller.forget_call();
    pm_->end_silence();
  }
  const bool is_impatient =
      !waiting_peers_.empty() || (directory_ != nullptr && directory_->has_unready());
  return is_impatient ? std::min(most_us, kBusyRestUs) : most_us;
}

void Link::end_rest(Poller& poller, const pm::Endpoint::Sleep& sleep, bool is_woken) {
  remove_sleeper();
  if (std::exchange(is_armed_, false)) pm_->end_sleep(sleep);  // else others have
  if (is_woken && !has_sleepers()) {
    std::uint64_t drained = 0;
    [[maybe_unused]] const ssize_t n = read(wake_fd_, &drained, sizeof drained);
  }
  if (poller.silence == silence_) poller.episode.rested(pm_->now(), thread_used_us());
}

// Where this process has something of its own to do it does not wait for a message alone.
ContextState Link::state_of_rest(Poller& poller) const {
  const MpiWait wait = poller.call.wait;
  if (wait == MpiWait::None || has_late_work()) return ContextState::Rests;
  Awaited awaited;
  const bool has_receive = std::any_of(ports_.begin(), ports_.end(), [&](const Port* port) {
    return port != nullptr && port->find_oldest(awaited);
  });
  if (wait == MpiWait::Request && !has_receive && live_requests_ == 0) return ContextState::Rests;
  if (std::exchange(poller.is_named, false)) {
    WaitNote note{.call = poller.call.name};
    if (has_receive) {
      note.source = awaited.peer;
      note.bytes = awaited.bytes;
      note.tag = mpi_tag(poller.call.library, awaited.tag, awaited.ignore);
    }
    if (wait == MpiWait::Collective) note.tag = WaitNote::kAny;
    pm_->segment().write_wait_note(note);
  }
  return ContextState::Waits;
}

}  // namespace score::pm::fi
