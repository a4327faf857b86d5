#include "gang/matrix/stride.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace score::gang {
namespace {

using Numbers = std::vector<std::uint32_t>;

std::vector<WeightedRow> rows_of_stride(const Numbers& weights) {
  std::vector<WeightedRow> rows;
  for (const std::uint32_t w : weights) rows.push_back({RowId{rows.size() + 1}, w});
  return rows;
}

struct SlicesCase {
  Numbers weights;
  Numbers slices;
};

TEST(Stride, WeightsBecomeTheFewestSlicesInTheirRatio) {
  const SlicesCase cases[] = {
      {{}, {}},
      {{100}, {1}},
      {{100, 100}, {1, 1}},
      {{300, 100}, {3, 1}},
      {{6, 4, 2}, {3, 2, 1}},
      {{10000, 1}, {255, 1}},
      {{10000, 9999}, {128, 127}},
  };
  for (const SlicesCase& c : cases)
    EXPECT_EQ(slices_per_cycle(rows_of_stride(c.weights)), c.slices);
}

TEST(Stride, HeavyRowsAreInterleaved) {
  EXPECT_EQ(interleave({1, 1, 1}), (Numbers{0, 1, 2}));
  EXPECT_EQ(interleave({1, 3, 1, 1}), (Numbers{1, 0, 1, 2, 1, 3}));
  EXPECT_EQ(interleave({3, 3, 1}), (Numbers{0, 1, 0, 1, 0, 1, 2}));
  const Numbers order = interleave({3, 1, 1, 1});
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_FALSE(order[i] == 0 && order[(i + 1) % order.size()] == 0) << "at " << i;
  }
}

TEST(Stride, NewRowGoesFirst) {
  Stride stride;
  stride.set_rows(rows_of_stride({1, 1}));
  for (int i = 0; i < 10; ++i) stride.ran(stride.next());
  stride.set_rows(rows_of_stride({1, 1, 1}));
  EXPECT_EQ(stride.plan_cycle().front(), 2U);
}

TEST(Stride, StreamOfNewRowsStarvesNoRow) {
  Stride stride;
  std::uint64_t next_row = 3;
  std::map<std::uint64_t, int> ran;
  for (int slice = 0; slice < 400; ++slice) {
    // Rows 1 and 2 stay; before every slice a new row replaces the last one.
    const std::vector<WeightedRow> rows{{RowId{1}, 1}, {RowId{2}, 1}, {RowId{next_row++}, 1}};
    stride.set_rows(rows);
    const std::uint32_t index = stride.plan_cycle().front();
    stride.ran(index);
    ++ran[std::min<std::uint64_t>(rows[index].row.value(), 3)];
  }
  EXPECT_GE(ran[1], 90);
  EXPECT_GE(ran[2], 90);
}

TEST(Stride, SharesFollowWeightsInShortEpochs) {
  const Numbers weights{5, 3, 1, 1};
  for (std::size_t slices_an_epoch = 1; slices_an_epoch <= 13; ++slices_an_epoch) {
    Stride stride;
    std::vector<double> ran(weights.size());
    constexpr std::size_t kEpochs = 1000;
    for (std::size_t epoch = 0; epoch < kEpochs; ++epoch) {
      stride.set_rows(rows_of_stride(weights));
      const Numbers cycle = stride.plan_cycle();
      for (std::size_t i = 0; i < slices_an_epoch; ++i) {
        const std::uint32_t index = cycle[i % cycle.size()];
        stride.ran(index);
        ++ran[index];
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double share = ran[i] / static_cast<double>(kEpochs * slices_an_epoch);
      EXPECT_NEAR(share, weights[i] / 10.0, 0.04)
          << "row " << i << ", epochs of " << slices_an_epoch;
    }
  }
}

}  // namespace
}  // namespace score::gang
