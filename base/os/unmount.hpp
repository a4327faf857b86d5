#pragma once
// Ends mounts of FUSE. Root asks the kernel; other users run fusermount3.

#include "base/result.hpp"

#include <string>

namespace score::inline base {

// Unmounts the directory, even if no process serves it any more. Without a mount nothing happens.
// Errors: the reason why the mount remains.
Status unmount(const std::string& directory);

}  // namespace score::inline base
