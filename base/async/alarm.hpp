#pragma once
// An Alarm sleeps until a deadline. It ends the sleep earlier if an earlier deadline is set in the
// meantime.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"

#include <optional>
#include <utility>

namespace score::inline base {

class Alarm {
 public:
  // Both `io` and `clock` must outlive the alarm.
  Alarm(asio::io_context& io, Clock& clock) : Alarm(io.get_executor(), clock) {}

  Alarm(asio::any_io_executor io, Clock& clock) : clock_(clock), wake_(std::move(io), 1) {}

  // Ends a sleep that would last longer than `deadline`.
  void at(std::optional<TimePoint> deadline) {
    if (!deadline || !until_ || *until_ <= *deadline) return;
    wake();
  }

  // Ends a sleep, so that the sleeper computes its deadline again, which is usually later. Call it
  // while the program is awake anyway: otherwise the sleep would end for nothing.
  void again() {
    if (until_) wake();
  }

  asio::awaitable<void> sleep_until(TimePoint deadline) {
    using namespace asio::experimental::awaitable_operators;
    until_ = deadline;
    co_await (clock_.sleep_until(deadline) || wake_.async_receive(kNoThrow));
  }

 private:
  void wake() {
    until_.reset();
    wake_.try_send(boost::system::error_code());
  }

  Clock& clock_;
  std::optional<TimePoint> until_;  // end of the sleep; empty once it has been woken
  asio::experimental::channel<void(boost::system::error_code)> wake_;
};

}  // namespace score::inline base
