// A range of m + 1 positions consists of its first position, the root, and min(fan-out, m) parts of
// nearly equal size, the larger ones first. So the tree is as flat as the fan-out allows, and
// finding a position takes one division per level.
#include "gang/control/tree.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <iterator>

namespace score::gang {

namespace {

struct SubtreeSizes {                 // the division of a range without its root
  std::uint32_t count, size, larger;  // `larger` parts of size + 1, then the others

  SubtreeSizes(std::uint32_t members, std::uint32_t fanout)
      : count(std::min(members, fanout)),
        size(count == 0 ? 0 : members / count),
        larger(count == 0 ? 0 : members % count) {}

  [[nodiscard]] std::uint32_t begin(std::uint32_t part) const {
    return part * size + std::min(part, larger);
  }

  [[nodiscard]] std::uint32_t holding(std::uint32_t offset) const {
    const std::uint32_t in_larger = larger * (size + 1);
    return offset < in_larger ? offset / (size + 1) : larger + (offset - in_larger) / size;
  }
};

}  // namespace

Tree::Tree(std::uint32_t members, std::uint32_t fanout)
    : members_(members), fanout_(std::max(fanout, kLeastFanout)) {
  SCORE_ASSERT(members >= 1, "the head is a member");
}

std::uint32_t Tree::narrowest_fanout(std::uint32_t members, std::uint32_t most) {
  const std::uint32_t depth = Tree(members, most).depth();
  std::uint32_t fanout = kLeastFanout;
  while (fanout < most && Tree(members, fanout).depth() > depth) ++fanout;
  return fanout;
}

PositionRange Tree::part_with(PositionRange whole, Position position) const {
  const Position first = whole.begin + 1;
  const SubtreeSizes parts(whole.end - first, fanout_);
  const std::uint32_t part = parts.holding(position - first);
  return {first + parts.begin(part), first + parts.begin(part + 1)};
}

PositionRange Tree::subtree(Position position) const {
  SCORE_ASSERT(position < members_, "position {} of {}", position, members_);
  PositionRange range{0, members_};
  while (range.begin != position) range = part_with(range, position);
  return range;
}

std::vector<Position> Tree::ancestors(Position position) const {
  SCORE_ASSERT(position < members_, "position {} of {}", position, members_);
  std::vector<Position> path;
  PositionRange range{0, members_};
  while (range.begin != position) {
    path.push_back(range.begin);
    range = part_with(range, position);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::optional<Position> Tree::parent(Position position) const {
  if (position == 0) return std::nullopt;
  return ancestors(position).front();
}

std::vector<Position> Tree::children(Position position) const {
  const PositionRange range = subtree(position);
  const SubtreeSizes parts(range.end - range.begin - 1, fanout_);
  std::vector<Position> children;
  for (std::uint32_t part = 0; part < parts.count; ++part) {
    children.push_back(position + 1 + parts.begin(part));
  }
  return children;
}

std::vector<Position> Tree::children_past(Position position, const Positions& silent) const {
  std::vector<Position> found;
  std::vector<Position> open = children(position);
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (!silent.contains(open[i])) {
      found.push_back(open[i]);
      continue;
    }
    const auto below = children(open[i]);
    std::ranges::copy(below, std::back_inserter(open));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::uint32_t Tree::depth() const {
  std::uint32_t depth = 0;
  for (PositionRange range{0, members_}; range.count() > 1; ++depth) {
    range = part_with(range, range.begin + 1);  // the first part is the largest
  }
  return depth;
}

}  // namespace score::gang
