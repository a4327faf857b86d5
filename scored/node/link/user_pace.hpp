// Decides when the frames or connections of a user may be passed on, so that all of them together
// keep a rate, independent of other users. Pure; one thread.
#pragma once

#include "base/async/token_bucket.hpp"
#include "base/ids.hpp"

#include <cstddef>
#include <map>

namespace score::node {

class UserPace {
 public:
  // rate: cost per second of each user. The burst is passed on at once after a pause.
  UserPace(double rate, double burst) : rate_(rate), burst_(burst) {}

  // Reserves the cost of a frame or connection that has arrived at `now`. Returns the time at which
  // it may be passed on; waiting frames keep their order.
  TimePoint reserve(UserId user, double cost, TimePoint now);

  // Returns the number of users that are stored: those whose share is not full, and possibly
  // others.
  [[nodiscard]] std::size_t size() const { return users_.size(); }

 private:
  struct Share {
    TokenBucket bucket;
    TimePoint whole{};  // the share is full again by then
  };

  double rate_;
  double burst_;
  std::map<UserId, Share> users_;
};

}  // namespace score::node
