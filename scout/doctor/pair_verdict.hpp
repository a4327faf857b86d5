// Evaluates the measured pairs of nodes.
#pragma once

#include "scout/doctor/finding.hpp"
#include "scout/doctor/probe_report.hpp"

namespace score::scout {

// Adds findings about the pairs. A node that reaches none of its partners is reported alone; other
// silent pairs are reported as pairs. A pair that is more than ten times slower than the median is
// a warning.
void judge_pairs(const ProbeReport& report, Findings& found);

}  // namespace score::scout
