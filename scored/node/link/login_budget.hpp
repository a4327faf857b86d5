// How soon the next command of a user may go on to the head: each costs both sides a handshake.
// Pure; one thread.
#pragma once

#include "base/async/token_bucket.hpp"
#include "base/ids.hpp"

#include <map>

namespace score::node {

class LoginBudget {
 public:
  static constexpr double kPerSecond = 50;
  static constexpr double kBurst = 200;

  // When the command that came at `now` may go on: at once, or when the user's share allows it.
  // Who waits so keeps to kPerSecond in the long run, whatever others do.
  TimePoint reserve(UserId user, TimePoint now);

  // Users whose share is not whole, and some others.
  [[nodiscard]] std::size_t size() const { return users_.size(); }

 private:
  struct Share {
    TokenBucket bucket{kPerSecond, kBurst};
    TimePoint whole{};  // full again by then
  };

  std::map<UserId, Share> users_;
};

}  // namespace score::node
