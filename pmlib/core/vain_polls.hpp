// A rank that polls in vain says so in its context: the state is ContextState::Waits, and
// SegmentHeader::rested_us has this value in place of a time. Unlike the state of a sleeping rank,
// this one has no end of its own, because the rank may be frozen at any time. The rank withdraws it
// at its first progress.
#pragma once

#include <cstdint>

namespace score::pm {

inline constexpr std::uint64_t kPollsInVain = UINT64_MAX;

}  // namespace score::pm
