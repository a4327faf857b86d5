// StoppableClock is the clock of an endpoint: monotonic microseconds minus the time for which the
// job was stopped.
//
// Reading the processor's counter takes a third of the time of the system's clock, and the clock is
// read twice per message. The counter's rate is measured once, to a few parts in 10,000, which is
// enough for timeouts.
#pragma once

#include "pmlib/core/messages.hpp"
#include "pmlib/core/segment.hpp"

#include <cstdint>

namespace score::pm {

// Returns the time of CLOCK_MONOTONIC in microseconds.
std::uint64_t monotonic_us();
// Returns the same from the processor's counter, where it can be used.
std::uint64_t quick_us();

class StoppableClock final : public JobClock {
 public:
  explicit StoppableClock(const Segment& segment);

  Microseconds now() override;

 private:
  SegmentHeader& header_;
  const struct CounterRate& rate_;
};

}  // namespace score::pm
