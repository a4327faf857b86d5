// Starting one attempt: A and B of protocol.hpp, from fork to exec.
#pragma once

#include "scored/launcher/protocol.hpp"

#include <sys/types.h>

namespace score::launcher {

// Below it are the numbers that children use by name: every descriptor of the launcher but 0, 1 and
// 2 is at least this.
inline constexpr int kFirstFd = 10;

struct Launch {
  Request request;
  int places[kPlaces];   // -1: none
  const char* shepherd;  // the program
};

struct Started {
  pid_t shepherd = 0;
  int pidfd = -1;  // of the shepherd
  // A pipe of Replies: B's process id as the group, or what failed. End of file: both programs run,
  // or A has ended.
  int notes = -1;
};

// Waits for nothing. Both descriptors are the caller's. 0, or an errno.
int start(const Launch& launch, Started& started);

}  // namespace score::launcher
