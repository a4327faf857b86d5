// A user as the kernel and the environment of the first program want it.
#pragma once

#include <sys/types.h>

namespace score::launcher {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  const gid_t* groups = nullptr;
  int group_count = 0;
  char* const* environment = nullptr;  // PATH, HOME, USER, LOGNAME, SHELL and nothing else
};

// Asks the system's user database. The pointers are good until the next call. Errors: errno
// (ENOENT: no such user; E2BIG: an entry or the list of groups is too long).
int look_up(uid_t user, Identity& identity);

// Becomes that user for good, in a child. Not being root it may only stay who it is. nullptr, or
// what failed with errno set.
const char* become(const Identity& identity);

}  // namespace score::launcher
