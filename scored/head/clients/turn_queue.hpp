#pragma once
// Whose request is handled next. There is one thread: a user who keeps it busy waits for those who
// used less of it. Pure: events in, the next ticket out; start-time fair queueing (Goyal, Vin,
// Cheng 1996) with the time that each request took as its length, which is known only afterwards.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace score::head {

class TurnQueue {
 public:
  using Ticket = std::uint64_t;

  // What a request costs at least: those that take no measurable time take turns, too.
  static constexpr Duration kLeastTime = std::chrono::microseconds(10);

  // Tickets are different from each other.
  void add(UserId user, Ticket ticket);
  // Its request is not to be handled any more. Unknown: no change.
  void remove(UserId user, Ticket ticket);
  // Of the user who used the least time since he came; his oldest. nullopt: no one waits.
  [[nodiscard]] std::optional<Ticket> next();
  // The thread worked for this user.
  void charge(UserId user, Duration time);

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct User {
    Duration used{0};  // since an instant that is common to all
    std::deque<Ticket> waiting;
  };

  static constexpr std::size_t kRemembered = 1'024;  // users with nothing to do

  void forget_idle();

  std::map<UserId, User> users_;
  Duration floor_{0};  // `used` of the one served last: an absent user saves up no time
  std::size_t size_ = 0;
};

}  // namespace score::head
