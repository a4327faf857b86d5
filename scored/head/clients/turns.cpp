#include "scored/head/clients/turns.hpp"

namespace score::head {

struct Turns::Place {
  Place(Turns& turns_in, UserId user_in)
      : turns(turns_in),
        user(user_in),
        ticket(++turns_in.last_ticket_),
        called(turns_in.io_, asio::steady_timer::time_point::max()) {
    turns.queue_.add(user, ticket);
    turns.places_.emplace(ticket, this);
  }

  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  ~Place() {
    turns.queue_.remove(user, ticket);
    turns.places_.erase(ticket);
    if (was_called && !has_turn) turns.end(user, Duration(0));
  }

  Turns& turns;
  UserId user;
  TurnQueue::Ticket ticket;
  asio::steady_timer called;
  bool was_called = false;
  bool has_turn = false;
};

asio::awaitable<std::optional<Turns::Turn>> Turns::take(UserId user) {
  if (std::exchange(is_busy_, true)) {
    Place place(*this, user);
    [[maybe_unused]] auto [ec] = co_await place.called.async_wait(kNoThrow);
    place.has_turn = place.was_called;
    if (!place.has_turn) co_return std::nullopt;
  }
  co_return Turn(*this, user);
}

void Turns::end(UserId user, Duration used) {
  queue_.charge(user, used);
  asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->go_on();
  });
}

void Turns::go_on() {
  const auto ticket = queue_.next();
  is_busy_ = ticket.has_value();
  if (!ticket) return;
  Place& place = *places_.at(*ticket);
  place.was_called = true;
  place.called.cancel();
}

}  // namespace score::head
