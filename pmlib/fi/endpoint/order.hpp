// Operations that wait for earlier ones to the same peer. What fits a few messages is carried out
// in the order in which it was submitted, whatever it is; a longer write is announced and its bytes
// come later. An endpoint that was asked for FI_ORDER_SAW, WAW or RAW holds everything back that
// follows such a write until that has ended, and one that was asked for FI_FENCE whatever has this
// flag until all that was before it has ended, with everything behind it. Endpoints that were asked
// for neither have no Order.
//
// Used with the link's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>

namespace score::pm::fi {

class Order {
 public:
  using Start = std::move_only_function<void()>;

  struct Operation {
    bool is_fenced = false;
    bool holds_later = false;  // until it has ended
  };

  // Whether an operation to `peer` may not begin now.
  bool must_wait(std::uint64_t peer, bool is_fenced) const;
  // Calls `start` at once, or when the operation may begin. ended() follows.
  void run(std::uint64_t peer, Operation operation, Start start);
  void ended(std::uint64_t peer, Operation operation);

  std::size_t held_count() const { return held_count_; }

  // Forgets what was held.
  void clear() {
    peers_.clear();
    held_count_ = 0;
  }

 private:
  struct Held {
    Operation operation;
    Start start;
  };

  struct Peer {
    std::size_t in_flight = 0;
    std::size_t holding = 0;  // of those
    std::deque<Held> held;
    bool is_draining = false;

    bool may_begin(bool is_fenced) const { return holding == 0 && (!is_fenced || in_flight == 0); }
  };

  static void begin(Peer& peer, Operation operation);

  std::unordered_map<std::uint64_t, Peer> peers_;  // that something is in flight to
  std::size_t held_count_ = 0;
};

}  // namespace score::pm::fi
