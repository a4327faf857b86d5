#pragma once
// BeatTiming holds the times of the control network's heartbeats and states how they fit together.

#include "base/limits.hpp"
#include "base/time.hpp"

#include <cstdint>

namespace score::gang {

using base::Duration;
using base::TimePoint;

struct BeatTiming {
  Duration period = base::limits::kHeartbeatPeriod;
  // An unanswered beat is sent this many times, at intervals of `retry`; then the next ancestor is
  // asked. The head, the last one, is asked twice as often.
  std::uint32_t tries = 4;
  Duration retry = std::chrono::milliseconds{50};
  // A round that has been unanswered for this long also sends a beat over TLS.
  Duration tls_after = std::chrono::milliseconds{220};
  // After this much more time without an answer, the member checks whether its host receives
  // anything at all. By then TCP has acknowledged or repeated the beat over TLS.
  Duration doubt_after = std::chrono::milliseconds{300};
  // A changed summary is sent up after this delay, so that changes at about the same time travel
  // together.
  Duration collect = std::chrono::milliseconds{20};

  // Beats over PM alone count for this long without a beat over TLS: PM brings a node no jobs.
  Duration vouched_for = std::chrono::seconds{15};

  // A beat may be late by the time that its sender needs to try its parent and its grandparent.
  [[nodiscard]] constexpr Duration lateness() const { return 2 * tries * retry; }

  // A member is reported silent this long after its last beat.
  [[nodiscard]] constexpr Duration silent_after() const { return period + lateness(); }

  // The members below a silent member that have not come to its parent are reported silent this
  // long after its last beat. It may have lived for a period after that beat and have answered a
  // child at the end of it; the child notices one period later.
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
