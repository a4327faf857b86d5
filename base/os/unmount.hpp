#pragma once
// Ends mounts of FUSE: as root by the kernel, as another user by fusermount3.

#include "base/result.hpp"

#include <string>

namespace score::inline base {

// Also where no process serves it any more. No mount: nothing happens. Errors: why it is there
// still.
Status unmount(const std::string& directory);

}  // namespace score::inline base
