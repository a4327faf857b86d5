// Defines the ranges of the timetables' epochs. Each head of the cluster has an incarnation, which
// is greater than that of every earlier head and is on its disk. Its epochs begin with it, so they
// are greater than all that earlier heads sent, and no node need say which epoch it has seen.
#pragma once

#include "base/ids.hpp"

#include <cstdint>

namespace score::gang {

// Ten years of one epoch per 5 ms, and 134 million heads.
constexpr unsigned kEpochBits = 36;
constexpr std::uint64_t kMostIncarnation = (std::uint64_t{1} << (64 - kEpochBits - 1)) - 1;

// Returns an epoch below all of this head and above all of earlier heads.
constexpr base::Epoch epochs_before(base::Epoch incarnation) {
  const std::uint64_t range =
      incarnation.value() < kMostIncarnation ? incarnation.value() : kMostIncarnation;
  return base::Epoch{range << kEpochBits};
}

// Returns true if a head of this incarnation, or an earlier one, can have sent the epoch.
constexpr bool is_epoch_up_to(base::Epoch incarnation, base::Epoch epoch) {
  return epoch.value() >> kEpochBits <= incarnation.value();
}

// Two timetables of one connection and one head are at most this many epochs apart, so no message
// can use up the numbers.
constexpr std::uint64_t kMostEpochStep = std::uint64_t{1} << 24;

constexpr bool is_epoch_step(base::Epoch from, base::Epoch to) {
  return from.value() >> kEpochBits != to.value() >> kEpochBits ||
         to.value() - from.value() <= kMostEpochStep;
}

}  // namespace score::gang
