#pragma once
// Turns keeps the order of the slices in force and the next one. The passes of the rows decide
// where a new cycle begins.
// rows say.

#include "gang/matrix/cycle.hpp"
#include "gang/matrix/stride.hpp"

#include <vector>

namespace score::gang {

class Turns {
 public:
  // Returns the cycles; the newest may not have begun.
  [[nodiscard]] const CycleClock& cycles() const { return cycles_; }

  // Returns true if a cycle of these rows would differ from the newest.
  [[nodiscard]] bool is_new(const std::vector<WeightedRow>& rows, Duration quantum) const {
    return rows != rows_ || cycles_.newest().quantum != quantum;
  }

  // Starts a cycle of these rows at `start`, which must not be before that of the newest one.
  void begin(const std::vector<WeightedRow>& rows, TimePoint start, Duration quantum);

 private:
  CycleClock cycles_;
  Stride stride_;                  // as of the start of cycles_.newest()
  Stride stride_before_;           // the same, before the newest's rows were set
  std::vector<WeightedRow> rows_;  // of cycles_.newest()
};

}  // namespace score::gang
