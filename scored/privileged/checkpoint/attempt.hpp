// Starts an attempt that may be saved, as process 1 of its namespaces: A and B of the launcher's
// protocol, and this program with two capabilities.
#pragma once

#include "scored/privileged/launcher/child.hpp"

namespace score::checkpoint {

// Reads what the launcher's child has passed. Returns false if the text is not from it.
bool take_launch(launcher::Launch& launch, const char* text);
// Starts the programs, or reports the step that failed. outside: the process that waits for this
// one.
[[noreturn]] void run_attempt(const launcher::Launch& launch, pid_t outside);
[[noreturn]] void fail_attempt(const char* step);

}  // namespace score::checkpoint
