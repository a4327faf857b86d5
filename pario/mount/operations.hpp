// Implements the operations of FUSE's low-level interface on a volume. FUSE uses the file numbers
// of the volume, except for the root.
//
// Data is not cached: every read and write goes to the servers (direct_io), so that all nodes see
// the same data. The kernel caches names, and attributes of directories, for kCacheSeconds.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

namespace score::pario {

inline constexpr double kCacheSeconds = 1.0;

// The operations are meant for fuse_session_new(); its user data is a std::unique_ptr<Volume>.
const fuse_lowlevel_ops& mount_operations();

}  // namespace score::pario
