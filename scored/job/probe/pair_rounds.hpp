#pragma once
// Assigns ranks to pairs, in rounds of disjoint pairs (the circle method of tournaments). Few ranks
// meet all others; if there are many, each meets 15 others that are spread evenly.

#include <cstdint>
#include <optional>

namespace score::probe {

inline constexpr std::uint32_t kMostRounds = 15;

// Returns 0 for fewer than two ranks.
[[nodiscard]] std::uint32_t round_count(std::uint32_t ranks);

// Returns the partner of `rank` < ranks in `round` < round_count(ranks); nullopt if the rank pauses
// in this round.
[[nodiscard]] std::optional<std::uint32_t> partner(std::uint32_t rank, std::uint32_t round,
                                                   std::uint32_t ranks);

}  // namespace score::probe
