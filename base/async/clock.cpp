#include "base/async/clock.hpp"

#include <memory>

// SimClock does not use Asio timers on its own clock, because the reactor checks such timers only
// when its real timer descriptor fires. A sleeper is an ordinary timer set to infinity, which is
// cancelled when its time has come. A wait that is cancelled from outside removes itself from the
// map.

namespace score::inline base {

asio::awaitable<void> SteadyClock::sleep_until(TimePoint time) {
  // Both clocks are CLOCK_MONOTONIC.
  const std::chrono::steady_clock::time_point expiry(time.time_since_epoch());
  asio::steady_timer timer(co_await asio::this_coro::executor, expiry);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> SimClock::sleep_until(TimePoint time) {
  if (time <= now_) co_return;
  Sleeper sleeper{.timer = asio::steady_timer(io_, asio::steady_timer::time_point::max())};
  const auto place = sleepers_.emplace(time, &sleeper);
  const auto leave = [&](Sleeper* s) {
    if (!s->is_due) sleepers_.erase(place);
  };
  const std::unique_ptr<Sleeper, decltype(leave)> guard(&sleeper, leave);
  // A timer at infinity ends only when it is cancelled, so the wait always returns
  // operation_aborted.
  const auto [error] = co_await sleeper.timer.async_wait(kNoThrow);
  if (!sleeper.is_due) throw boost::system::system_error(error);
}

void SimClock::run_ready() {
  io_.restart();
  io_.poll();
}

void SimClock::wake_first() {
  const auto first = sleepers_.begin();
  now_ = std::max(now_, first->first);
  Sleeper& sleeper = *first->second;
  sleepers_.erase(first);
  sleeper.is_due = true;
  sleeper.timer.cancel();
}

void SimClock::run_until(TimePoint time) {
  run_ready();
  while (!sleepers_.empty() && sleepers_.begin()->first <= time) {
    wake_first();
    run_ready();
  }
  now_ = std::max(now_, time);
}

bool SimClock::run_next() {
  run_ready();
  if (sleepers_.empty()) return false;
  wake_first();
  run_ready();
  return true;
}

}  // namespace score::inline base
