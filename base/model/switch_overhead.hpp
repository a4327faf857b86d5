#pragma once
// SwitchOverhead is the time that gang switches took from the entering jobs. Everything that shows
// overhead (traces, the stream, the page, sctop, metrics) adds up what this file computes, and
// divides it by the time in which a job was scheduled: docs/reference/glossary.md.

#include "base/time.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace score {
inline namespace base {

// The parts of a switch follow each other. They have the names of the phases of a switch; the
// phases guard, save and restore together are the network's part.
struct SwitchOverhead {
  Duration wake{0};     // from the boundary until the switcher runs: the leaving job still runs
  Duration stop{0};     // until the leaving jobs are stopped
  Duration network{0};  // until a channel that changes hands is ready
  Duration go{0};       // until the entering jobs continue

  [[nodiscard]] constexpr Duration total() const { return wake + stop + network + go; }

  constexpr SwitchOverhead& operator+=(const SwitchOverhead& other) {
    wake += other.wake;
    stop += other.stop;
    network += other.network;
    go += other.go;
    return *this;
  }

  friend constexpr SwitchOverhead operator-(const SwitchOverhead& a, const SwitchOverhead& b) {
    return {a.wake - b.wake, a.stop - b.stop, a.network - b.network, a.go - b.go};
  }

  friend bool operator==(const SwitchOverhead&, const SwitchOverhead&) = default;
};

struct OverheadPart {
  const char* name;
  Duration SwitchOverhead::*part;
};

inline constexpr std::array<OverheadPart, 4> kOverheadParts = {
    {{"wake", &SwitchOverhead::wake},
     {"stop", &SwitchOverhead::stop},
     {"network", &SwitchOverhead::network},
     {"go", &SwitchOverhead::go}}};

// SwitchMoments are the ends of the parts of a switch, after its boundary and in this order.
// `restored` equals `stopped` if no channel changed hands.
struct SwitchMoments {
  Duration woke{0}, stopped{0}, restored{0}, done{0};
};

// Returns the overhead of a switch at which a job enters. A switch at which none enters has none,
// because no job waits for it.
constexpr SwitchOverhead overhead_of(const SwitchMoments& at) {
  const Duration restored = std::max(at.stopped, at.restored);
  return {at.woke, at.stopped - at.woke, restored - at.stopped, at.done - restored};
}

// Returns the part of `busy`, the time in which a job was scheduled, within 0 and 1. It is empty if
// none was.
constexpr std::optional<double> share_of(Duration part, Duration busy) {
  if (busy <= Duration(0)) return std::nullopt;
  return std::clamp(static_cast<double>(part.count()) / static_cast<double>(busy.count()), 0.0,
                    1.0);
}

// A switch is late if its wake-up delay exceeds this percentage of the slice that begins. It is the
// largest overhead that docs/performance.md allows, at the shortest slices: a late switch by itself
// costs its slice more than that.
inline constexpr int kLatePercent = 5;

// A slice of 0 has no end, so that no delay matters.
constexpr bool is_late(Duration woke, Duration slice) {
  return slice > Duration(0) && woke > slice * kLatePercent / 100;
}

}  // namespace base
}  // namespace score
