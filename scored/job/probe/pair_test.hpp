#pragma once
// Measures one pair of ranks at a time. Both call meet() in the same round.

#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <pm.h>

namespace score::probe {

struct PairFigures {
  Duration round_trip{};        // of 8 bytes: the median of up to 100
  double bytes_per_second = 0;  // of 4 MiB to the other; 0: they were not all there after 4 s
};

// The lower rank measures and gets figures; nothing: no answer within 2 s. The higher rank answers
// and gets nothing. Frames of earlier rounds are ignored.
std::optional<PairFigures> meet(pm_context* pm, std::uint32_t other, std::uint32_t round);

}  // namespace score::probe
