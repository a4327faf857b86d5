// What the measured pairs of nodes say.
#pragma once

#include "scout/doctor/finding.hpp"
#include "scout/doctor/probe_report.hpp"

namespace score::scout {

// A node that none of its partners hears is named alone; other silent pairs are named as pairs. A
// pair that is more than ten times slower than the median is a warning.
void judge_pairs(const ProbeReport& report, Findings& found);

}  // namespace score::scout
