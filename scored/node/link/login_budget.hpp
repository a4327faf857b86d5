// When the next command of a user may connect to the head: each costs both sides a handshake.
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

  // When the command that came at `now` may connect: at once, or when the user's share allows it.
  // So each user has at most kPerSecond in the long run, independent of others.
  TimePoint reserve(UserId user, TimePoint now);

  // Users whose share is not full, and some others.
  [[nodiscard]] std::size_t size() const { return users_.size(); }

 private:
  struct Share {
    TokenBucket bucket{kPerSecond, kBurst};
    TimePoint whole{};  // full again by then
  };

  std::map<UserId, Share> users_;
};

}  // namespace score::node
