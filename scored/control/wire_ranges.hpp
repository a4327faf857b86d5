#pragma once
// Stores sets of positions as numbers in a message: first, count, first, count ...

#include "gang/control/positions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace score::control {

// Adds at most `most` ranges, the first ones.
template <class Numbers>
void add_ranges(const gang::Positions& some, std::size_t most, Numbers& numbers) {
  for (const auto& range : some.ranges()) {
    if (static_cast<std::size_t>(numbers.size()) >= 2 * most) return;
    numbers.Add(range.begin);
    numbers.Add(range.end - range.begin);
  }
}

template <class Numbers>
gang::Positions ranges_of(const Numbers& numbers) {
  std::vector<gang::PositionRange> ranges;
  for (int i = 0; i + 1 < numbers.size(); i += 2) {
    const std::uint32_t begin = numbers.Get(i);
    const std::uint32_t count = std::min(numbers.Get(i + 1), UINT32_MAX - begin);
    ranges.push_back({begin, begin + count});
  }
  return gang::Positions(ranges);
}

}  // namespace score::control
