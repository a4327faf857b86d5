#pragma once
// Removes shared memory that MPI libraries keep in files of /dev/shm. A library removes its files
// itself, unless its processes are killed; the files would then use memory until the node restarts.

#include "base/time.hpp"

#include <string>
#include <vector>

namespace score::shepherd {

// Removes files that no process uses: regular files in `directory` that belong to this process's
// user, are not empty, have a name as MPI libraries choose it, were created or changed since
// `since`, and that no process has open or mapped. A running job therefore keeps its files,
// including other jobs of this user, and files of other kinds stay. Returns the names of the
// removed files. Where the kernel grants no leases (fs.leases-enable), nothing is removed.
std::vector<std::string> remove_abandoned_memory(const std::string& directory,
                                                 base::WallTime since);

}  // namespace score::shepherd
