#pragma once
// Messages between heads and witnesses about which head is in charge (docs/adr/0089). Plain values.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <compare>
#include <cstdint>

namespace score::gang {

// Place in the list `heads` of the configuration: 0 or 1.
using HeadIndex = std::uint32_t;
inline constexpr HeadIndex kHeads = 2;

inline constexpr HeadIndex other_head(HeadIndex head) {
  return 1 - head;
}

// How far a log goes: the head (by its term) that wrote the last transaction, and how many
// transactions that head had written. Of two logs the greater one has every acknowledged change.
struct LogPosition {
  Epoch term;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

// Which heads have every acknowledged change. The head in charge writes it, with ascending
// versions; of two marks the greater one (term, then version) holds.
struct LogMark {
  Epoch term;
  std::uint64_t version = 0;
  std::uint32_t heads = 0;  // bit 1 << HeadIndex

  [[nodiscard]] bool includes(HeadIndex head) const { return (heads & (1U << head)) != 0; }

  [[nodiscard]] bool is_older_than(const LogMark& other) const {
    return term != other.term ? term < other.term : version < other.version;
  }

  friend bool operator==(const LogMark&, const LogMark&) = default;
};

// A head asks whether a witness has granted its lease to the other head, or (wants) asks for it.
struct LeaseRequest {
  HeadIndex head = 0;
  Epoch term;  // the incarnation that the head has, or would have
  bool wants = false;
  LogMark mark;
  LogPosition position;
  TimePoint sent{};  // by the asking head's clock; comes back
};

struct LeaseReply {
  bool granted = false;
  bool is_free = false;  // no lease of the other head is valid
  Epoch term;            // the greatest that was granted
  Epoch asked;           // the request's term
  LogMark mark;
  LogPosition position;  // of a head that answers
  TimePoint sent{};      // the request's
};

// All by monotonic clocks, each by that of the daemon that measures it: a witness measures a lease
// from the arrival of the request, the head from its departure, so the head's ends first.
struct LeaseTiming {
  Duration lease = std::chrono::milliseconds(2'500);
  // The head's clock may be this much slower than a witness's.
  Duration margin = std::chrono::milliseconds(100);
  Duration period = std::chrono::milliseconds(300);  // of requests
  Duration keep_alive = std::chrono::seconds(1);     // ... of a head that follows
  // The second head of the list lets the first one go first.
  Duration stagger = std::chrono::milliseconds(200);
};

}  // namespace score::gang
