#pragma once
// The times of the control network's heartbeats, and why they fit together.

#include "base/limits.hpp"
#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;
using base::TimePoint;

struct BeatTiming {
  Duration period = base::limits::kHeartbeatPeriod;
  // A beat without answer is sent this often in all, at this distance; then the next ancestor is
  // asked. The head, the last one, is asked twice as often.
  std::uint32_t tries = 4;
  Duration retry = std::chrono::milliseconds{50};
  // A round without answer for this long sends a beat over TLS besides.
  Duration tls_after = std::chrono::milliseconds{220};
  // A round without answer for this much longer asks whether the host hears anything at all. By
  // then the beat over TLS has been acknowledged, or repeated, by TCP.
  Duration doubt_after = std::chrono::milliseconds{300};
  // A changed summary goes up after this, so that changes which come together travel together.
  Duration collect = std::chrono::milliseconds{20};

  // How long beats count without one over TLS: over PM a node gets no jobs.
  Duration vouched_for = std::chrono::seconds{15};

  // A beat may be late by what its sender needs to try its parent and its grandparent.
  [[nodiscard]] constexpr Duration lateness() const { return 2 * tries * retry; }

  // From the last beat of a member until it is called silent.
  [[nodiscard]] constexpr Duration silent_after() const { return period + lateness(); }

  // From the last beat of a member until those below it that have not come to its parent are called
  // silent, too: it may have lived for a period after that beat, and have answered a child at its
  // end, which notices one period later.
  [[nodiscard]] constexpr Duration adopt_after() const { return 2 * period + 2 * lateness(); }
};

static_assert(BeatTiming{}.silent_after() < base::limits::kSuspectAfter,
              "the tree reports silence before the head would conclude it");
static_assert(BeatTiming{}.period + BeatTiming{}.tls_after + std::chrono::milliseconds{500} <
                  base::limits::kSuspectAfter,
              "without PM a node is heard over TLS before it is suspected");

static_assert(BeatTiming{}.period + BeatTiming{}.tls_after + BeatTiming{}.doubt_after +
                      std::chrono::seconds{1} <
                  std::chrono::seconds{3},
              "a node that hears nothing says so within 3 s, on a busy machine too");

}  // namespace score::gang
