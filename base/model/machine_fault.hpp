#pragma once
// Tells failures of the machine from failures of what it was asked to do.

#include "base/result.hpp"

namespace score::inline base {

// Returns true if a later try, or one on a different machine, may succeed: a daemon was killed in
// the meantime, or the machine was too busy or lacked memory, processes, descriptors or space. A
// missing file or a missing permission is not such a failure.
[[nodiscard]] bool is_machine_fault(const Error& error);

}  // namespace score::inline base
