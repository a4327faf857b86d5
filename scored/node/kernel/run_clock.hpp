// Measures how long an attempt has run. The switcher's thread writes it, and the main one reads it.
#pragma once

#include "base/time.hpp"
#include "scored/node/kernel/running_sum.hpp"

#include <algorithm>

namespace score::node {

class RunClock {
 public:
  // A repeated start or stop has no effect. Thread: the writer's.
  void start(TimePoint at) noexcept { runs_.start(at.time_since_epoch().count()); }

  void stop(TimePoint at) noexcept { runs_.stop(at.time_since_epoch().count()); }

  // May miss a run that stops at this very moment, but never counts a time twice. Thread: any.
  [[nodiscard]] Duration read(TimePoint now) const noexcept {
    const auto [ran, since] = runs_.read();
    const auto at = now.time_since_epoch().count();
    return Duration(ran + std::max(at - since.value_or(at), Duration::rep{0}));
  }

  [[nodiscard]] bool is_running() const noexcept { return runs_.is_open(); }

 private:
  RunningSum runs_;
};

}  // namespace score::node
