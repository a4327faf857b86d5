#pragma once
// RepeatFilter handles one node's output of one attempt, whose link may break. The shepherd numbers
// its bytes and repeats unacknowledged ones after a broken link. The filter passes each byte once,
// and acknowledges each byte once on every link. The class is pure.

#include "base/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::head {

class RepeatFilter {
 public:
  // `resumed` means that an earlier head may have taken some output; the first chunk that arrives
  // says where to begin.
  explicit RepeatFilter(bool resumed = false) : unknown_(resumed), silent_(resumed) {}

  // A shepherd has one window, so more than twice that is a protocol violation.
  static constexpr std::uint64_t kMaxUnacknowledged = 2 * limits::kIoWindowBytes;

  struct Verdict {
    std::uint64_t drop = 0;         // bytes at the beginning that had arrived before
    std::uint64_t acknowledge = 0;  // bytes to acknowledge to the node now
    bool gap = false;               // bytes are missing before it: a protocol violation
    bool overrun = false;           // more than a window is unacknowledged: a protocol violation
  };

  Verdict arrived(std::uint64_t offset, std::uint64_t size) {
    Verdict verdict;
    if (std::exchange(unknown_, false)) received_ = acknowledged_ = offset;
    if (offset > received_) {
      verdict.gap = true;
      return verdict;
    }
    verdict.drop = std::min(received_ - offset, size);
    if (size > kMaxUnacknowledged || offset + size > acknowledged_ + kMaxUnacknowledged) {
      verdict.overrun = true;
      return verdict;
    }
    received_ = std::max(received_, offset + size);
    // An acknowledgment may have been lost with the broken link. The offset at which the shepherd
    // starts again shows how much was lost.
    if (std::exchange(silent_, false) && acknowledged_ > offset) {
      verdict.acknowledge = acknowledged_ - offset;
    }
    return verdict;
  }

  // Some bytes were taken. Returns how many to acknowledge now; arrived() returns the rest later.
  std::uint64_t taken(std::uint64_t bytes) {
    acknowledged_ += bytes;
    return silent_ ? 0 : bytes;
  }

  void link_lost() { silent_ = true; }

 private:
  std::uint64_t received_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool unknown_;
  bool silent_;  // the link is new and the shepherd has not sent its offset
};

}  // namespace score::head
