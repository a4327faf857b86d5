// Runs the job by which the doctor examines nodes: one task of scored-probe on each node that takes
// jobs.
#pragma once

#include "scout/doctor/evidence.hpp"

#include <string>

namespace score::scout {

// Sets probe or why_no_probe. `server` is the head's socket. Waits for the job.
void run_probe(const std::string& server, Evidence& evidence);

}  // namespace score::scout
