#include "gang/control/positions.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace score::gang {
namespace {

using Ranges = std::vector<PositionRange>;

Ranges of(const std::array<bool, 64>& set) {
  Ranges ranges;
  for (Position p = 0; p < set.size(); ++p) {
    if (!set[p]) continue;
    if (ranges.empty() || ranges.back().end != p) ranges.push_back({p, p});
    ++ranges.back().end;
  }
  return ranges;
}

TEST(Positions, JoinsRangesThatTouch) {
  Positions some;
  some.add({5, 7});
  some.add({1, 3});
  some.add({3, 5});
  EXPECT_EQ(some.ranges(), (Ranges{{1, 7}}));
  const Positions others(Ranges{{9, 9}, {4, 6}, {1, 2}, {5, 8}, {2, 3}});
  EXPECT_EQ(others.ranges(), (Ranges{{1, 3}, {4, 8}}));
}

TEST(Positions, BehavesLikeASet) {
  std::minstd_rand source(1);
  const auto chance = [&] { return static_cast<Position>(source()); };
  for (int run = 0; run < 200; ++run) {
    Positions some;
    std::array<bool, 64> set{};
    for (int step = 0; step < 30; ++step) {
      const Position begin = chance() % 64, end = chance() % 65;
      const PositionRange range{begin, end};
      const bool adds = chance() % 2 == 0;
      adds ? some.add(range) : some.remove(range);
      for (Position p = begin; p < end; ++p) set[p] = adds;
      ASSERT_EQ(some.ranges(), of(set));
    }
    some.clip({10, 40});
    for (Position p = 0; p < 64; ++p) {
      if (p < 10 || p >= 40) set[p] = false;
      EXPECT_EQ(some.contains(p), set[p]);
    }
    EXPECT_EQ(some.ranges(), of(set));
    EXPECT_EQ(some.count(), static_cast<std::size_t>(std::count(set.begin(), set.end(), true)));
  }
}

}  // namespace
}  // namespace score::gang
