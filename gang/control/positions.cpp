#include "gang/control/positions.hpp"

#include <algorithm>

namespace score::gang {

Positions::Positions(std::span<const PositionRange> ranges) {
  std::vector<PositionRange> sorted(ranges.begin(), ranges.end());
  std::erase_if(sorted, [](const PositionRange& range) { return range.count() == 0; });
  std::sort(sorted.begin(), sorted.end());
  for (const PositionRange& range : sorted) {
    if (!ranges_.empty() && range.begin <= ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, range.end);
    } else {
      ranges_.push_back(range);
    }
  }
}

void Positions::add(PositionRange range) {
  if (range.count() == 0) return;
  const auto first = std::find_if(ranges_.begin(), ranges_.end(), [&](const PositionRange& other) {
    return other.end >= range.begin;
  });
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

void Positions::add(const Positions& others) {
  for (const PositionRange& range : others.ranges_) add(range);
}

void Positions::remove(PositionRange range) {
  std::vector<PositionRange> left;
  for (const PositionRange& one : ranges_) {
    const PositionRange below{one.begin, std::min(one.end, range.begin)};
    const PositionRange above{std::max(one.begin, range.end), one.end};
    if (range.count() == 0 || one.end <= range.begin || one.begin >= range.end) {
      left.push_back(one);
      continue;
    }
    if (below.count() > 0) left.push_back(below);
    if (above.count() > 0) left.push_back(above);
  }
  ranges_ = std::move(left);
}

void Positions::clip(PositionRange range) {
  remove({0, range.begin});
  remove({std::max(range.begin, range.end), UINT32_MAX});
}

bool Positions::contains(Position position) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), position,
      [](Position value, const PositionRange& range) { return value < range.begin; });
  return after != ranges_.begin() && std::prev(after)->contains(position);
}

std::size_t Positions::count() const {
  std::size_t sum = 0;
  for (const PositionRange& range : ranges_) sum += range.count();
  return sum;
}

}  // namespace score::gang
