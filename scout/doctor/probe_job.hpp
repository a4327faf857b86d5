// The job by which the doctor looks at nodes: one task of scored-probe on each that takes jobs.
#pragma once

#include "scout/doctor/evidence.hpp"

#include <string>

namespace score::scout {

// Sets probe or why_no_probe. `server`: the head's socket. Waits for the job.
void run_probe(const std::string& server, Evidence& evidence);

}  // namespace score::scout
