#pragma once
// A witness grants a lease to one head at a time. Every node is a witness, and each head is one for
// itself and for the other head. It has no I/O and no clock.

#include "gang/leadership/lease.hpp"

#include <optional>

namespace score::gang {

class Witness {
 public:
  // Memory must survive a restart of the daemon. Without it (after a boot of the host) the witness
  // knows nothing, and its replies say so by a mark of term 0.
  struct Memory {
    Epoch term;                       // the greatest term that was granted
    std::optional<HeadIndex> holder;  // the head that has or had the lease
    LogMark mark;

    friend bool operator==(const Memory&, const Memory&) = default;
  };

  // The witness may have granted a lease just before the restart. So for the length of one lease it
  // grants leases only to the remembered holder.
  Witness(Memory memory, Duration lease, TimePoint now)
      : memory_(memory), lease_(lease), until_(now + lease) {}

  // If memory() has changed, the caller must store it before it sends the answer.
  LeaseReply answer(const LeaseRequest& request, TimePoint now);

  // Returns true if no lease of the other head is valid.
  [[nodiscard]] bool is_free_for(HeadIndex head, TimePoint now) const {
    return now >= until_ || memory_.holder == head;
  }

  [[nodiscard]] const Memory& memory() const { return memory_; }

  // Returns the end of the last lease.
  [[nodiscard]] TimePoint until() const { return until_; }

 private:
  Memory memory_;
  Duration lease_;
  TimePoint until_;
};

}  // namespace score::gang
