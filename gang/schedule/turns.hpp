#pragma once
// The order of the slices in force and the next one: a new cycle is begun where the passes of the
// rows say.

#include "gang/matrix/cycle.hpp"
#include "gang/matrix/stride.hpp"

#include <vector>

namespace score::gang {

class Turns {
 public:
  // Not yet begun, perhaps.
  [[nodiscard]] const CycleClock& cycles() const { return cycles_; }

  // Would a cycle of these rows be another than the newest?
  [[nodiscard]] bool is_new(const std::vector<WeightedRow>& rows, Duration quantum) const {
    return rows != rows_ || cycles_.newest().quantum != quantum;
  }

  // A cycle of these rows starts at `start`, which is not before that of the newest one.
  void begin(const std::vector<WeightedRow>& rows, TimePoint start, Duration quantum);

 private:
  CycleClock cycles_;
  Stride stride_;                  // as of the start of cycles_.newest()
  Stride stride_before_;           // the same, before the newest's rows were set
  std::vector<WeightedRow> rows_;  // of cycles_.newest()
};

}  // namespace score::gang
