#pragma once
// Measures one pair of ranks at a time. Both ranks call meet() in the same round.

#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <pm.h>

namespace score::probe {

struct PairFigures {
  Duration round_trip{};        // for 8 bytes: the median of up to 100
  double bytes_per_second = 0;  // for 4 MiB to the other rank; 0: not received within 4 s
};

// The lower rank measures the pair and returns its figures, or nullopt if there is no answer within
// 2 s. The higher rank answers and returns nullopt. Frames of earlier rounds are ignored.
std::optional<PairFigures> meet(pm_context* pm, std::uint32_t other, std::uint32_t round);

}  // namespace score::probe
