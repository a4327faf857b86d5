#include "scored/control/relayed_clock.hpp"

#include <chrono>

namespace score::control {

bool contradicts(const gang::ClockFilter& clock, const gang::ClockSample& sample) {
  using base::Duration;
  if (!clock.synchronised()) return false;
  const Duration offset =
      ((sample.head_received - sample.node_sent) + (sample.head_sent - sample.node_received)) / 2;
  const Duration trip =
      (sample.node_received - sample.node_sent) - (sample.head_sent - sample.head_received);
  const Duration expected = clock.to_cluster(sample.node_received) - sample.node_received;
  const Duration bound = clock.error_bound(sample.node_received) + trip / 2 + sample.head_error;
  return std::chrono::abs(offset - expected) > bound + std::chrono::microseconds{1};
}

}  // namespace score::control
