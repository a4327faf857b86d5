// Evaluates the measured pairs of nodes.
#pragma once

#include "scout/doctor/finding.hpp"
#include "scout/doctor/probe_report.hpp"
#include "scout/doctor/remedies.hpp"

namespace score::scout {

// Adds findings about the pairs. A node that reaches none of its partners is reported alone; other
// silent pairs are reported as pairs. A pair that is more than ten times slower than the median is
// a warning, as is one whose bandwidth was not measured.
void judge_pairs(const ProbeReport& report, const Remedies& remedies, Findings& found);

}  // namespace score::scout
