#pragma once
// Declares the commands score checkpoint and score restart.

#include "scout/session/command.hpp"

namespace score::scout {

int checkpoint_main(const Invocation& invocation);
int restart_main(const Invocation& invocation);

}  // namespace score::scout
