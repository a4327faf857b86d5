// Holds back operations that must wait for earlier ones to the same peer. Operations of a few
// messages are carried out in the order of submission, whatever their kind; a longer write is
// announced and its bytes come later.
//
// An endpoint opened with FI_ORDER_SAW, WAW or RAW holds back every operation that follows such a
// write until the write has ended. An endpoint opened with FI_FENCE holds back an operation with
// this flag, and all operations behind it, until all earlier ones have ended. Other endpoints have
// no Order.
//
// The caller must hold the link's lock.
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

  // Returns true if an operation to `peer` may not begin now.
  bool must_wait(std::uint64_t peer, bool is_fenced) const;
  // Calls `start` at once, or when the operation may begin. The caller must call ended()
  // afterwards.
  void run(std::uint64_t peer, Operation operation, Start start);
  void ended(std::uint64_t peer, Operation operation);

  std::size_t held_count() const { return held_count_; }

  // Drops the operations that were held back.
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
    std::size_t holding = 0;  // those of them that hold back later ones
    std::deque<Held> held;
    bool is_draining = false;

    bool may_begin(bool is_fenced) const { return holding == 0 && (!is_fenced || in_flight == 0); }
  };

  static void begin(Peer& peer, Operation operation);

  std::unordered_map<std::uint64_t, Peer> peers_;  // peers with operations in flight
  std::size_t held_count_ = 0;
};

}  // namespace score::pm::fi
