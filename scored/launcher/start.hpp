// Starting one attempt: A and B of protocol.hpp, from fork to exec.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace score::launcher {

struct StartSpec {
  std::uint64_t attempt = 0;
  uid_t user = 0;
  int listener = -1;     // the shepherd's listening socket
  int cgroup_root = -1;  // -1: no cgroups
  int cpu_root = -1;     // -1: the tasks need no directory there
  int null_device = -1;
  const char* shepherd = nullptr;
  bool low_priority = false;
  bool reset_oom_score = false;  // the launcher's own is not 0
};

struct Started {
  pid_t shepherd = 0;
  pid_t group = 0;
  int pidfd = -1;  // of the shepherd; the caller's
};

// What failed and why; error 0: nothing.
struct Failure {
  int error = 0;
  char step[40] = {};
};

// Waits until both programs run, at most 5 s. After a failure whatever was forked has been killed
// (what became the launcher's child is left to Shepherds::sweep).
Failure start_attempt(const StartSpec& spec, Started& started);

}  // namespace score::launcher
