// Implements the operations of FUSE's low-level interface on a volume. FUSE uses the file numbers
// of the volume, except for the root.
//
// Data is not cached: every read and write goes to the servers (direct_io), so that all nodes see
// the same data. The kernel caches names, and attributes of what is not open here, for
// kCacheSeconds.
#pragma once

#include "pario/mount/replies.hpp"

namespace score::pario {

// The operations are meant for fuse_session_new(); its user data is a MountOptions.
const fuse_lowlevel_ops& mount_operations();

}  // namespace score::pario
