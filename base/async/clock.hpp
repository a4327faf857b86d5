#pragma once
// Clock provides time as a service. Code that waits or asks for the time takes a Clock&, so that
// tests run hours in milliseconds. Nothing outside base reads a clock or creates a timer. A clock
// may be used only on the thread of its io_context.

#include "base/async/asio.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <map>

namespace score::inline base {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;

  // Returns the time of day. It may jump, because administrators can set it.
  [[nodiscard]] virtual WallTime wall() const { return wall_now(); }

  // Waits until now() >= time and returns immediately if that holds already. When the task is
  // cancelled it throws boost::system::system_error (operation_aborted), as Asio's own operations
  // do. The clock must outlive the wait.
  virtual asio::awaitable<void> sleep_until(TimePoint time) = 0;

  asio::awaitable<void> sleep_for(Duration duration) { return sleep_until(now() + duration); }
};

// SteadyClock reads CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return monotonic_now(); }

  asio::awaitable<void> sleep_until(TimePoint time) override;
};

// SimClock is a clock that moves only when the program moves it. Sleepers wake in order of time,
// then of arrival, and each sees its own time as now(). Everything that is ready to run has run
// before the next sleeper wakes. It suits only programs whose I/O completes without waiting for the
// kernel (memory transports, not sockets).
class SimClock final : public Clock {
 public:
  // `io` must outlive the clock. Time starts at `start`.
  explicit SimClock(asio::io_context& io, TimePoint start = TimePoint(std::chrono::hours(1)))
      : io_(io), now_(start) {}

  [[nodiscard]] TimePoint now() const override { return now_; }

  asio::awaitable<void> sleep_until(TimePoint time) override;

  // Runs all ready handlers, then moves time from sleeper to sleeper up to `time` and runs each of
  // them. It must not be called from a task of the io_context.
  void run_until(TimePoint time);

  void run_for(Duration duration) { run_until(now_ + duration); }

  // Runs all ready handlers. If there is a sleeper, it moves to the next wake-up and runs it;
  // otherwise it returns false.
  bool run_next();

  [[nodiscard]] std::size_t sleeper_count() const { return sleepers_.size(); }

 private:
  struct Sleeper {
    asio::steady_timer timer;  // at infinity; cancelled when due
    bool is_due = false;
  };

  using Sleepers = std::multimap<TimePoint, Sleeper*>;

  void run_ready();
  void wake_first();

  asio::io_context& io_;
  TimePoint now_;
  Sleepers sleepers_;
};

}  // namespace score::inline base
