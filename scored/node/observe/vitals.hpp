// The daemon's own figures and its switch records as messages.
#pragma once

#include "proto/node.pb.h"
#include "scored/node/switch/switch_trace.hpp"

namespace score::node {

// CPU time and resident memory of this process. The memory is read once per kMemoryPeriod: that
// costs as much as the rest of a heartbeat.
inline constexpr Duration kMemoryPeriod = std::chrono::seconds{12};

class Vitals {
 public:
  // fill() will read the memory.
  [[nodiscard]] bool is_memory_due(TimePoint now) const { return now >= memory_due_; }

  void fill(wire::Heartbeat& message, TimePoint now);

 private:
  TimePoint memory_due_{};
  std::uint64_t resident_bytes_ = 0;
};

void fill_trace(const SwitchTrace::Extract& extract, wire::NodeTrace& trace);

}  // namespace score::node
