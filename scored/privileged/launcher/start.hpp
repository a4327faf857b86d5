// Starts one attempt: A and B of protocol.hpp, from fork to exec.
#pragma once

#include "scored/privileged/launcher/child.hpp"

#include <sys/types.h>

namespace score::launcher {

struct StartedShepherd {
  pid_t shepherd = 0;
  int pidfd = -1;  // of the shepherd
  // A pipe of Replies: B's process id as the group, or the step that failed. End of file means that
  // both programs run, or that A has ended.
  int notes = -1;
};

// Starts the attempt without waiting. The caller owns both descriptors. Returns 0 or an errno.
int start(const Launch& launch, StartedShepherd& started);

}  // namespace score::launcher
