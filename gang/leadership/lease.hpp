#pragma once
// These plain values are the messages between heads and witnesses about which head is in charge
// (docs/adr/0089).

#include "base/ids.hpp"
#include "base/time.hpp"

#include <compare>
#include <cstdint>

namespace score::gang {

// The place of a head in the list `heads` of the configuration is 0 or 1.
using HeadIndex = std::uint32_t;
inline constexpr HeadIndex kHeads = 2;

inline constexpr HeadIndex other_head(HeadIndex head) {
  return 1 - head;
}

// A position names the end of a log: the head (by its term) that wrote the last transaction, and
// the number of transactions that this head had written. The greater one of two logs has every
// acknowledged change.
struct LogPosition {
  Epoch term;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const LogPosition&, const LogPosition&) = default;
};

// A seal proves that a head of this cluster wrote a mark: it is made from the cluster key, which
// witnesses do not have. Whoever receives a mark checks the seal and drops a mark without a valid
// one, so gang/leadership only sees marks that a head wrote.
struct MarkSeal {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const MarkSeal&, const MarkSeal&) = default;
};

// A mark is the record of which heads have every acknowledged change. The head in charge writes it,
// with ascending versions. The greater one of two marks (by term, then version) holds.
struct LogMark {
  Epoch term;
  std::uint64_t version = 0;
  std::uint32_t heads = 0;  // bit 1 << HeadIndex
  // Every head of the mark has stored its log up to here. A disk that ends before is an older copy.
  LogPosition position{};
  MarkSeal seal{};

  [[nodiscard]] bool includes(HeadIndex head) const { return (heads & (1U << head)) != 0; }

  [[nodiscard]] bool is_older_than(const LogMark& other) const {
    return term != other.term ? term < other.term : version < other.version;
  }

  friend bool operator==(const LogMark&, const LogMark&) = default;
};

// A head asks whether a witness has granted its lease to the other head. With `wants` it requests
// the lease.
struct LeaseRequest {
  HeadIndex head = 0;
  Epoch term;  // the incarnation that the head has, or would have
  bool wants = false;
  LogMark mark;
  LogPosition position;
  TimePoint sent{};  // by the asking head's clock; the reply repeats it
};

struct LeaseReply {
  bool granted = false;
  bool is_free = false;  // no lease of the other head is valid
  Epoch term;            // the greatest term that was granted
  Epoch asked;           // the request's term
  LogMark mark;
  LogPosition position;  // only in the reply of a head
  TimePoint sent{};      // copied from the request
};

// StoredTerms are on the head's disk. Without them a restarted head could elect itself in an
// earlier term than the other head, which it had elected.
struct StoredTerms {
  Epoch greatest;  // that this head has taken or granted
  Epoch granted;   // greatest that it has granted to the other head
};

// All times are monotonic, each by the clock of the daemon that measures it. A witness measures a
// lease from the arrival of the request, the head from its departure, so the lease ends first at
// the head.
struct LeaseTiming {
  Duration lease = std::chrono::milliseconds(2'500);
  // The head's clock may be slower than a witness's by this much per lease.
  Duration margin = std::chrono::milliseconds(100);
  Duration period = std::chrono::milliseconds(300);  // between requests
  Duration keep_alive = std::chrono::seconds(1);     // between requests of a following head
  // The second head of the list waits this much longer, so that the first one can take charge.
  Duration stagger = std::chrono::milliseconds(200);
  // A head that has just started waits this long for a quorum of the witnesses before it relies on
  // the disks of both heads alone, because the witnesses know whether a disk is an older copy.
  Duration patience = std::chrono::milliseconds(2'500);
};

}  // namespace score::gang
