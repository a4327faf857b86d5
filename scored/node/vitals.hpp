// What the daemon tells of itself and of its switches, as messages.
#pragma once

#include "proto/node.pb.h"
#include "scored/node/switch_trace.hpp"

namespace score::node {

// CPU time and resident memory of this process.
void fill_vitals(wire::Heartbeat& message);

void fill_trace(const SwitchTrace::Extract& extract, wire::NodeTrace& trace);

}  // namespace score::node
