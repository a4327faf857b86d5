#pragma once

#include "scout/session/command.hpp"

namespace score::scout {

// Exit code 1: there are faults.
int doctor_main(const Invocation& invocation);

}  // namespace score::scout
