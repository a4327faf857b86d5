#pragma once
// One node's output of one attempt, whose link may break. The shepherd numbers its bytes and
// repeats after a broken link what was not acknowledged; here each byte is let through once, and
// each is acknowledged once on every link. Pure.

#include "base/limits.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::head {

class RepeatFilter {
 public:
  // resumed: there may have been output that an earlier head took; the first that arrives says
  // where to begin.
  explicit RepeatFilter(bool resumed = false) : unknown_(resumed), silent_(resumed) {}

  // A shepherd has one window; more than twice that is no honest mistake.
  static constexpr std::uint64_t kMaxUnacknowledged = 2 * limits::kIoWindowBytes;

  struct Verdict {
    std::uint64_t drop = 0;         // bytes at the beginning that were here before
    std::uint64_t acknowledge = 0;  // to be said to the node now
    bool gap = false;               // bytes are missing before it: the node breaks the protocol
    bool overrun = false;           // more is unacknowledged than a window allows: it does so, too
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
    // What was acknowledged into the broken link may have been lost with it; where the shepherd
    // starts again says how much.
    if (std::exchange(silent_, false) && acknowledged_ > offset) {
      verdict.acknowledge = acknowledged_ - offset;
    }
    return verdict;
  }

  // Bytes were taken. The answer: how many to acknowledge now; the rest with the next that arrives.
  std::uint64_t taken(std::uint64_t bytes) {
    acknowledged_ += bytes;
    return silent_ ? 0 : bytes;
  }

  void link_lost() { silent_ = true; }

 private:
  std::uint64_t received_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool unknown_;
  bool silent_;  // the link is new and the shepherd has not said where it starts
};

}  // namespace score::head
