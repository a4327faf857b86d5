// Chooses how a write to a peer of this node is copied: through the pool, or once by the kernel.
//
// Which is quicker differs between hosts by a factor of two in both directions (docs/adr/0052), and
// depends on what the receiver does with the bytes. So both are tried: some megabytes are copied
// one way, then some the other, in turns. The way with the faster best turn is used for a while.
// This class is pure: it reads no clock itself. It is not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace score::pm {

enum class CopyWay : std::uint8_t { Pool = 0, Kernel = 1 };

class CopyChoice {
 public:
  // Shorter writes always use the pool: the kernel takes most of a microsecond before the first
  // byte.
  static constexpr std::uint32_t kMinKernelBytes = 4096;
  static constexpr std::uint64_t kTurnBytes = 2 << 20;
  static constexpr std::uint32_t kTurns = 6;  // three for each way
  static constexpr std::uint64_t kKeptBytes = std::uint64_t{512} << 20;

  // Returns the way for a write of `length` bytes that starts now, while writes of `under_way`
  // bytes go through the pool. `clock()` returns nanoseconds and is called a few times per turn.
  // Only writes of similar length are compared with each other.
  template <class Clock>
  CopyWay choose(std::uint32_t length, std::uint64_t under_way, Clock&& clock) {
    if (length < kMinKernelBytes) return CopyWay::Pool;
    Class& c = classes_[class_of(length)];
    const std::uint64_t done = c.bytes - std::min(c.bytes, under_way);
    if (done >= c.limit) [[unlikely]] {
      next_turn(c, done, clock());
    } else if (c.shares_time) {
      c.bytes = 0;
      c.started_ns = clock();
    }
    // The time of writes left over from the pool's turn must not count as the kernel's, so the
    // measurement restarts. Writes of other lengths may be in flight all the time, so it does so
    // only kMaxSkipped times.
    c.shares_time =
        c.turn > 0 && c.way == CopyWay::Kernel && under_way > 0 && c.skipped < kMaxSkipped;
    c.skipped += c.shares_time ? 1 : 0;
    c.bytes += length;
    return c.way;
  }

 private:
  // The classes are writes of less than 8 KB, 16 KB and so on; the last has all longer ones.
  static constexpr std::size_t kClasses = 8;
  static constexpr std::uint32_t kMaxSkipped = 64;  // writes of a turn

  struct Class {
    CopyWay way = CopyWay::Kernel;  // so that the pool has the first turn
    bool shares_time = false;
    std::uint32_t skipped = 0;
    std::uint32_t turn = 0;              // 0: no trial is running
    std::uint64_t bytes = 0, limit = 0;  // of this turn
    std::uint64_t started_ns = 0;
    std::array<std::uint64_t, 2> best_ns{UINT64_MAX, UINT64_MAX};  // per megabyte, for each way
  };

  static std::size_t class_of(std::uint32_t length) {
    return std::min(static_cast<std::size_t>(std::bit_width(length >> 13)), kClasses - 1);
  }

  static void next_turn(Class& c, std::uint64_t done, std::uint64_t now_ns) {
    if (c.turn > 0) {
      std::uint64_t& best = c.best_ns[static_cast<std::size_t>(c.way)];
      best = std::min(best, ((now_ns - c.started_ns) << 20) / done);
    }
    const bool is_tried = c.turn == kTurns;
    if (is_tried) {
      c.way = c.best_ns[1] < c.best_ns[0] ? CopyWay::Kernel : CopyWay::Pool;
      c.turn = 0;
      c.best_ns = {UINT64_MAX, UINT64_MAX};
    } else {
      c.way = c.way == CopyWay::Pool ? CopyWay::Kernel : CopyWay::Pool;
      ++c.turn;
    }
    c.bytes = 0;
    c.skipped = 0;
    c.limit = is_tried ? kKeptBytes : kTurnBytes;
    c.started_ns = now_ns;
  }

  std::array<Class, kClasses> classes_;
};

}  // namespace score::pm
