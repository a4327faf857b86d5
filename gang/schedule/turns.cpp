// This file is tested by publisher_test.cpp and gang/head/cluster_test.cpp.
#include "gang/schedule/turns.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

void Turns::begin(const std::vector<WeightedRow>& rows, TimePoint start, Duration quantum) {
  const Cycle& old = cycles_.before(start);
  // A cycle that is superseded before it takes effect has given no row a slice. Two whole cycles
  // are as good as many, because all passes grow alike.
  if (cycles_.newest().start != start) {
    const std::uint64_t size = std::max<std::uint64_t>(1, old.order.size());
    const std::uint64_t done = old.slices_by(start);
    const std::uint64_t replayed = done < 2 * size ? done : 2 * size + done % size;
    stride_before_ = stride_;
    for (std::uint64_t i = 0; !old.order.empty() && i < replayed; ++i) {
      stride_before_.ran(old.order[i % size]);
    }
  }
  stride_ = stride_before_;
  stride_.set_rows(rows);
  Cycle cycle;
  cycle.serial = cycles_.newest().serial + 1;
  cycle.start = start;
  cycle.quantum = quantum;
  for (const WeightedRow& row : rows) cycle.rows.push_back(row.row);
  if (!rows.empty()) cycle.order = stride_.plan_cycle();
  cycles_.append(std::move(cycle));
  rows_ = rows;
}

}  // namespace score::gang
