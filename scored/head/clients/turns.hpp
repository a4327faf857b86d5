#pragma once
// Turns lets one request run at a time, in the order of TurnQueue. Between two requests everything
// else that is ready runs: nodes, timers, completed commits. So requests, however many, delay the
// rest for no longer than one request takes.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "scored/head/clients/turn_queue.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace score::head {

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // The turn lasts as long as this object lives; its time is charged to the user.
  class Turn {
   public:
    Turn(Turns& turns, UserId user) : turns_(&turns), user_(user), begun_(turns.clock_.now()) {}

    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), user_(other.user_), begun_(other.begun_) {}

    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    ~Turn() {
      if (turns_ != nullptr) turns_->end(user_, used());
    }

    [[nodiscard]] Duration used() const { return turns_->clock_.now() - begun_; }

   private:
    Turns* turns_;
    UserId user_;
    TimePoint begun_;
  };

  // Turns must be owned by a shared_ptr. The clock must outlive it, and it must outlive the waiting
  // tasks.
  Turns(asio::any_io_executor io, Clock& clock) : io_(std::move(io)), clock_(clock) {}

  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Waits for a turn; returns nullopt if the waiting task is being cancelled.
  asio::awaitable<std::optional<Turn>> take(UserId user);

 private:
  struct Place;  // of a waiting task

  void end(UserId user, Duration used);
  void go_on();

  asio::any_io_executor io_;
  Clock& clock_;
  TurnQueue queue_;
  std::map<TurnQueue::Ticket, Place*> places_;
  TurnQueue::Ticket last_ticket_ = 0;
  bool is_busy_ = false;  // a turn is in progress, or other work runs between turns
};

}  // namespace score::head
