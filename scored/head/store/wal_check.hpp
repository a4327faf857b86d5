#pragma once
// This header checks whether SQLite's write-ahead log is intact. SQLite takes the first frame with
// a wrong checksum as the end of the log, so a flipped bit would silently lose every commit after
// it.

#include "base/result.hpp"

#include <string>

namespace score::head {

// Checks the log at `path`; a missing file is sound. Errors: Malformed, and the kernel's. Each
// commit is synced before the next one begins (synchronous=FULL), so a crash leaves at most one
// torn commit, the last. Two or more commits after a broken frame mean that the file is damaged.
[[nodiscard]] Status check_wal(const std::string& path);

}  // namespace score::head
