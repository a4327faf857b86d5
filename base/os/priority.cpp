// This file uses the C library alone, because the launcher compiles it too.
#include "base/os/priority.hpp"

#include <cstdio>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace score::inline base {

bool set_nice(int nice) {
  const int session = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (session >= 0) {
    dprintf(session, "%d", nice);
    close(session);
  }
  return setpriority(PRIO_PROCESS, 0, nice) == 0;
}

}  // namespace score::inline base
