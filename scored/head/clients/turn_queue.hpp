#pragma once
// TurnQueue decides whose request is handled next. There is one thread, so a user who keeps it busy
// waits for the users who used less of it. The class is pure: it takes events and returns the next
// ticket. It uses start-time fair queueing (Goyal, Vin, Cheng 1996); the length of a request is the
// time that it took, which is known only afterwards.

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

  // Every request costs at least this much, so requests that take no measurable time take turns,
  // too.
  static constexpr Duration kLeastTime = std::chrono::microseconds(10);

  // Adds a request; each ticket must be unique.
  void add(UserId user, Ticket ticket);
  // Removes a request that will not be handled; an unknown ticket is ignored.
  void remove(UserId user, Ticket ticket);
  // Returns the oldest ticket of the waiting user with the least used time; nullopt if none waits.
  [[nodiscard]] std::optional<Ticket> next();
  // Charges the time that the thread worked for this user.
  void charge(UserId user, Duration time);

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct User {
    Duration used{0};  // since an instant that is common to all users
    std::deque<Ticket> waiting;
  };

  static constexpr std::size_t kRemembered = 1'024;  // beyond it idle users are dropped

  void forget_idle();

  std::map<UserId, User> users_;
  Duration floor_{0};  // `used` of the last user served: an absent user saves up no time
  std::size_t size_ = 0;
};

}  // namespace score::head
