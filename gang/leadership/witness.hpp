#pragma once
// A witness grants a lease to one head at a time: every node is one, and each head is one for
// itself and for the other head. Pure.

#include "gang/leadership/lease.hpp"

#include <optional>

namespace score::gang {

class Witness {
 public:
  // What must survive a restart of the daemon. Without it (a host that was booted) the witness
  // knows nothing, and says so: a mark of term 0.
  struct Memory {
    Epoch term;                       // the greatest that was granted
    std::optional<HeadIndex> holder;  // to whom
    LogMark mark;

    friend bool operator==(const Memory&, const Memory&) = default;
  };

  // Before the restart it may have granted a lease just now: for one lease it grants none but to
  // the remembered holder.
  Witness(Memory memory, Duration lease, TimePoint now)
      : memory_(memory), lease_(lease), until_(now + lease) {}

  // If memory() has changed, it must be stored before the answer leaves.
  LeaseReply answer(const LeaseRequest& request, TimePoint now);

  // No lease of the other head is valid.
  [[nodiscard]] bool is_free_for(HeadIndex head, TimePoint now) const {
    return now >= until_ || memory_.holder == head;
  }

  [[nodiscard]] const Memory& memory() const { return memory_; }

  // When the last lease ends.
  [[nodiscard]] TimePoint until() const { return until_; }

 private:
  Memory memory_;
  Duration lease_;
  TimePoint until_;
};

}  // namespace score::gang
