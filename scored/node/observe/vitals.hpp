// The daemon's own figures and its switch records as messages.
#pragma once

#include "proto/node.pb.h"
#include "scored/node/switch/switch_trace.hpp"

namespace score::node {

// CPU time and resident memory of this process. The memory is at most kMemoryBeats calls old:
// reading it costs as much as the rest of a heartbeat.
inline constexpr unsigned kMemoryBeats = 10;

class Vitals {
 public:
  // True: the memory was read this time.
  bool fill(wire::Heartbeat& message);

 private:
  unsigned beats_ = 0;
  std::uint64_t resident_bytes_ = 0;
};

void fill_trace(const SwitchTrace::Extract& extract, wire::NodeTrace& trace);

}  // namespace score::node
