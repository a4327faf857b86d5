// Decides when the next command of a user may connect to the head, because each connection costs
// both sides a handshake. Pure; one thread.
#pragma once

#include "base/async/token_bucket.hpp"
#include "base/ids.hpp"

#include <map>

namespace score::node {

class LoginBudget {
 public:
  static constexpr double kPerSecond = 50;
  static constexpr double kBurst = 200;

  // Reserves a connection and returns the time at which it may be made: at once, or when the user's
  // share allows it. The command has arrived at `now`. So each user has at most kPerSecond in the
  // long run, independent of other users.
  TimePoint reserve(UserId user, TimePoint now);

  // Returns the number of users that are stored: those whose share is not full, and possibly
  // others.
  [[nodiscard]] std::size_t size() const { return users_.size(); }

 private:
  struct Share {
    TokenBucket bucket{kPerSecond, kBurst};
    TimePoint whole{};  // the share is full again by then
  };

  std::map<UserId, Share> users_;
};

}  // namespace score::node
