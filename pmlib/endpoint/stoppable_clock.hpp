// The clock of an endpoint: monotonic microseconds less the time the job was stopped.
//
// Reading the processor's counter takes a third of the time of the system's clock, and the clock is
// read twice per message. Its rate is measured once, to a few parts in 10,000: enough for
// time-outs.
#pragma once

#include "pmlib/core/messages.hpp"
#include "pmlib/core/segment.hpp"

#include <cstdint>

namespace score::pm {

// CLOCK_MONOTONIC.
std::uint64_t monotonic_us();
// The same by the processor's counter, where it can be used.
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
