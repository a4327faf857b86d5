// Fills messages with the daemon's own figures and its switch records.
#pragma once

#include "gang/node/clock_filter.hpp"
#include "proto/node.pb.h"
#include "scored/node/switch/switch_trace.hpp"

namespace score::node {

// Reads CPU time and resident memory of this process. The memory is read once per kMemoryPeriod,
// because that costs as much as the rest of a heartbeat.
inline constexpr Duration kMemoryPeriod = std::chrono::seconds{12};

class Vitals {
 public:
  // Returns true if fill() will read the memory.
  [[nodiscard]] bool is_memory_due(TimePoint now) const { return now >= memory_due_; }

  void fill(wire::Heartbeat& message, TimePoint now);

 private:
  TimePoint memory_due_{};
  std::uint64_t resident_bytes_ = 0;
};

// Fills in the records of switches, and what the clock of the node is compared with the cluster's.
void fill_trace(const SwitchTrace::Extract& extract, const gang::ClockFilter& clock, TimePoint now,
                wire::NodeTrace& trace);

}  // namespace score::node
