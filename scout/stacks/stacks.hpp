#pragma once
// Declares the command score stacks.

#include "scout/session/command.hpp"

namespace score::scout {

int stacks_main(const Invocation& invocation);

}  // namespace score::scout
