// Determines which actions of transactions may be carried out. An action that depends on records of
// the log waits until these are on the disk, if it requests that, and at the other replica, if
// there is one. So a replica that takes over knows everything that a client or a server was
// informed of. This class is pure.
#pragma once

#include "pario/core/transactions.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace score::pario {

class SafeActions {
 public:
  using Action = Transactions::Action;

  // Adds actions in their order. Records must be appended, and sent to the other replica, at once.
  void add(std::vector<Action> actions) {
    for (Action& action : actions) {
      if (action.kind == Action::Kind::Append) {
        ++position_;
        ready_.push_back(std::move(action));
      } else {
        waiting_.push_back({position_, std::move(action)});
      }
    }
    release();
  }

  // Call this when the records up to this one are on the disk.
  void synced(std::uint64_t position) {
    synced_ = std::max(synced_, position);
    release();
  }

  // Call this when the other replica has the records up to this one.
  void delivered(std::uint64_t position) {
    delivered_ = std::max(delivered_, position);
    release();
  }

  // Sets whether there is a follower. It must have all existing records, and receive those that
  // follow.
  void set_follower(bool has) {
    has_follower_ = has;
    if (has) delivered_ = position_;
    release();
  }

  // Returns the actions that may be carried out now.
  std::vector<Action> take() { return std::exchange(ready_, {}); }

  bool has_follower() const { return has_follower_; }

  // Returns the position of the last record; the first one is 1.
  std::uint64_t position() const { return position_; }

  bool waits_for_disk() const {
    return std::ranges::any_of(waiting_, [this](const Waiting& one) {
      return one.action.after_sync && one.position > synced_;
    });
  }

 private:
  struct Waiting {
    std::uint64_t position = 0;
    Action action;
  };

  bool is_safe(const Waiting& one) const {
    return (!one.action.after_sync || one.position <= synced_) &&
           (!has_follower_ || one.position <= delivered_);
  }

  void release() {
    std::deque<Waiting> left;
    for (Waiting& one : waiting_) {
      if (is_safe(one)) {
        ready_.push_back(std::move(one.action));
      } else {
        left.push_back(std::move(one));
      }
    }
    waiting_ = std::move(left);
  }

  bool has_follower_ = false;
  std::uint64_t position_ = 0;
  std::uint64_t synced_ = 0;
  std::uint64_t delivered_ = 0;
  std::deque<Waiting> waiting_;
  std::vector<Action> ready_;
};

}  // namespace score::pario
