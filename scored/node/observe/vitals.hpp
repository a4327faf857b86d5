// What the daemon tells of itself and of its switches, as messages.
#pragma once

#include "proto/node.pb.h"
#include "scored/node/switch/switch_trace.hpp"

namespace score::node {

// CPU time and resident memory of this process; the memory as it was at most kMemoryBeats calls
// ago, because asking for it costs as much as all the rest of a heartbeat.
inline constexpr unsigned kMemoryBeats = 10;

class Vitals {
 public:
  // True: the memory was asked for this time.
  bool fill(wire::Heartbeat& message);

 private:
  unsigned beats_ = 0;
  std::uint64_t resident_bytes_ = 0;
};

void fill_trace(const SwitchTrace::Extract& extract, wire::NodeTrace& trace);

}  // namespace score::node
