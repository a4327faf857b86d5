// The launcher's command line, checked. Nothing else configures it.
#pragma once

#include <sys/types.h>

namespace score::launcher {

struct Options {
  const char* rundir = nullptr;  // launcher.sock goes there
  // "auto": the cgroup of the daemon that connects; nullptr: none, the fallback with process
  // groups.
  const char* cgroup_root = nullptr;
  const char* shepherd = nullptr;   // absolute path of the program
  uid_t daemon_user = 0;            // the only one who may connect
  const char* interface = nullptr;  // where rings may be opened; nullptr: nowhere
  bool allow_root = false;          // jobs of uid 0: a one-user cluster of root
};

enum class Parsed { Run, Help, Bad };

// Pointers into argv. Bad: one line about it went to stderr.
Parsed parse_options(int argc, char** argv, Options& options);

}  // namespace score::launcher
