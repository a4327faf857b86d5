#pragma once
// Ends freezes that the timetable does not explain. Thread: the main loop.

#include "scored/node/link/head_link.hpp"
#include "scored/node/switch/switcher.hpp"

#include <string>

namespace score::node {

// Applies the plan again if jobs are frozen for longer than it explains, and reports each of them
// in the log and to the head. Must be called regularly. `node` is this node's name, `epoch` that of
// its newest timetable.
void thaw_overdue(Switcher& switcher, HeadLink& head, const std::string& node, Epoch epoch);

}  // namespace score::node
