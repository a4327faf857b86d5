#pragma once

#include "scout/session/command.hpp"

namespace score::scout {

// Runs the command. The exit code is 1 if there are faults.
int doctor_main(const Invocation& invocation);

}  // namespace score::scout
