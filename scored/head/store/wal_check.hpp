#pragma once
// Whether SQLite's write-ahead log is whole. SQLite takes the first frame whose checksum is wrong
// for the end of the log, so a flipped bit would lose every commit after it without a word.

#include "base/result.hpp"

#include <string>

namespace score::head {

// path: of the log; no file is sound. Errors: Malformed, and the kernel's. Each commit is synced
// before the next one begins (synchronous=FULL), so a crash leaves at most one torn commit, the
// last: two or more commits behind a broken frame mean that the file is damaged.
[[nodiscard]] Status check_wal(const std::string& path);

}  // namespace score::head
