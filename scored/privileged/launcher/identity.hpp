// Holds a user in the form that the kernel and the environment of the first program need. It is for
// a forked child, because a look-up in the user database may take forever.
#pragma once

#include <sys/types.h>

namespace score::launcher {

struct UserIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  gid_t* groups = nullptr;  // in ascending order
  int group_count = 0;
  char* const* environment = nullptr;  // PATH, HOME, USER, LOGNAME, SHELL and nothing else
};

// Looks up the user. The pointers are valid until the next call. The own user of this process needs
// no entry. Returns 0 or an errno (ENOENT: no such user; E2BIG: an entry or the list of groups is
// too long).
int look_up(uid_t user, UserIdentity& identity);

// Becomes that user permanently, and verifies the result with the kernel. A process that is not
// root, or is root and may not set groups, may only stay the user that it is. Returns nullptr, or
// the step that failed with errno set; the process must end then.
const char* become(const UserIdentity& identity);

}  // namespace score::launcher
