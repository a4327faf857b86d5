#pragma once
// Who meets whom: rounds of disjoint pairs (the circle method of tournaments). Few ranks meet all
// others; of many, each meets 15 others that lie evenly among all.

#include <cstdint>
#include <optional>

namespace score::probe {

inline constexpr std::uint32_t kMostRounds = 15;

// 0 for fewer than two ranks.
[[nodiscard]] std::uint32_t round_count(std::uint32_t ranks);

// The partner of `rank` < ranks in `round` < round_count(ranks); nothing: it rests.
[[nodiscard]] std::optional<std::uint32_t> partner(std::uint32_t rank, std::uint32_t round,
                                                   std::uint32_t ranks);

}  // namespace score::probe
