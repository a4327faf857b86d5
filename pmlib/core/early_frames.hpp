// EarlyFrames records frames of remote writes that were stored although a number before them is
// missing. Each frame of a write states its own place in memory, so it needs no receive buffer:
// once the gap is closed, its number only has to be counted. The go-back-N cannot distinguish this
// from a slow network.
//
// The record covers a few peers at a time and does not lie in the segment: the sender sends a
// forgotten frame again.
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

class EarlyFrames {
 public:
  static constexpr std::uint32_t kReach = 256;  // numbers beyond a gap
  static constexpr std::size_t kBytes = kReach / 8;

  struct Gap {
    bool is_open = false;
    bool must_report = false;  // a LOSE is owed
    std::uint32_t peer = 0;
    std::uint32_t highest = 0;           // number that came early
    std::uint32_t reported_highest = 0;  // missing frames up to here were reported
    Microseconds reported_at = 0;        // when all missing frames were last reported
    std::uint32_t asked = 0;             // how often since the last progress
    std::bitset<kReach> held;            // by number modulo kReach
    std::uint32_t held_count = 0;

    bool holds(std::uint32_t number) const { return held.test(number % kReach); }

    void hold(std::uint32_t number) {
      if (!holds(number)) ++held_count;
      held.set(number % kReach);
    }

    void drop(std::uint32_t number) {
      if (holds(number)) --held_count;
      held.reset(number % kReach);
    }
  };

  bool is_empty() const { return open_ == 0; }

  // Returns null if `peer` has no open gap.
  Gap* find(std::uint32_t peer) {
    if (open_ == 0) return nullptr;
    for (Gap& gap : gaps_) {
      if (gap.is_open && gap.peer == peer) return &gap;
    }
    return nullptr;
  }

  // Returns the gap of `peer` and opens it if needed; returns null if too many are open.
  Gap* open(std::uint32_t peer) {
    if (Gap* gap = find(peer); gap != nullptr) return gap;
    for (Gap& gap : gaps_) {
      if (gap.is_open) continue;
      gap = Gap();
      gap.is_open = true;
      gap.peer = peer;
      ++open_;
      return &gap;
    }
    return nullptr;
  }

  void close(Gap& gap) {
    if (gap.is_open) --open_;
    gap.is_open = false;
  }

  std::span<Gap> gaps() { return gaps_; }

 private:
  std::array<Gap, 4> gaps_;
  std::uint32_t open_ = 0;
};

}  // namespace score::pm
