// Passes the messages between the kernel and libfuse, and uses features of the kernel that the
// libfuse of Debian 12 does not know (docs/adr/0128).
//
// - The reply to INIT asks for shared mappings of files that are opened with direct_io (Linux 6.6).
// - TMPFILE (Linux 6.2) has the form of CREATE, and is passed to libfuse as such; its name is "/".
#pragma once

#include "pario/mount/replies.hpp"

namespace score::pario {

// Call this after fuse_session_mount(), before the loop. Returns 0 or a negative errno value.
int amend_messages(fuse_session* session);

}  // namespace score::pario
