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
    std::uint64_t drop = 0;         // bytes at the beginning that had arrived before, or all that
                                    // follow refused ones
    std::uint64_t acknowledge = 0;  // bytes to acknowledge to the node now
    bool gap = false;               // bytes are missing before it: a protocol violation
    bool overrun = false;           // more than a window is unacknowledged: a protocol violation
  };

  Verdict arrived(std::uint64_t offset, std::uint64_t size) {
    Verdict verdict;
    if (std::exchange(unknown_, false)) received_ = acknowledged_ = offset;
    const bool is_skipped = skips(offset);
    if (offset > received_ && !is_skipped) {
      verdict.gap = true;
      return verdict;
    }
    verdict.drop = is_skipped ? size : std::min(received_ - offset, size);
    if (size > kMaxUnacknowledged || offset + size > acknowledged_ + kMaxUnacknowledged) {
      verdict.overrun = true;
      return verdict;
    }
    if (is_skipped) return verdict;
    refused_ = false;
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

  // The bytes after those that have arrived were refused. The shepherd will send them again; what
  // follows them until then is dropped.
  void refuse() { refused_ = true; }

  // Returns true if the bytes at this offset follow refused ones.
  [[nodiscard]] bool skips(std::uint64_t offset) const { return refused_ && offset > received_; }

  [[nodiscard]] bool has_refused() const { return refused_; }

  // Returns how many of these bytes had arrived before.
  [[nodiscard]] std::uint64_t repeated(std::uint64_t offset, std::uint64_t size) const {
    return unknown_ || offset > received_ ? 0 : std::min(received_ - offset, size);
  }

  // The shepherd sends everything again that was not acknowledged.
  void link_lost() {
    silent_ = true;
    refused_ = false;
  }

 private:
  std::uint64_t received_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool unknown_;
  bool refused_ = false;
  bool silent_;  // the link is new and the shepherd has not sent its offset
};

}  // namespace score::head
