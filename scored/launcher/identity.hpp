// A user as the kernel and the environment of the first program want it. For a forked child: asking
// the user database may take for ever.
#pragma once

#include <sys/types.h>

namespace score::launcher {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  gid_t* groups = nullptr;  // in ascending order
  int group_count = 0;
  char* const* environment = nullptr;  // PATH, HOME, USER, LOGNAME, SHELL and nothing else
};

// The pointers are good until the next call. Errors: errno (ENOENT: no such user; E2BIG: an entry
// or the list of groups is too long).
int look_up(uid_t user, Identity& identity);

// Becomes that user for good and reads back what the kernel made of it. Not being root it may only
// stay who it is. nullptr, or what failed with errno set: then the process must end.
const char* become(const Identity& identity);

}  // namespace score::launcher
