// These are the commands of the accounting. They return the exit code of the process.
#pragma once

#include "scout/session/command.hpp"

namespace score::scout {

int scacct_main(const Invocation& invocation);
int efficiency_main(const Invocation& invocation);

}  // namespace score::scout
