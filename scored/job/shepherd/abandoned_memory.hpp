#pragma once
// Shared memory that MPI libraries keep in files of /dev/shm. A library removes its files itself,
// unless its processes are killed: then they would take memory until the node is started anew.

#include "base/time.hpp"

#include <string>
#include <vector>

namespace score::shepherd {

// Removes what no process can use any more: regular files in `directory` that belong to this
// process's user, have a name as MPI libraries give it, have been made or changed since `since`,
// and that no process has open or mapped. So a running job keeps its files, this user's others too,
// and so does whoever keeps files of another kind there. Gives the names of those removed. A
// process of this user that cannot be looked at and has shared memory keeps all.
std::vector<std::string> remove_abandoned_memory(const std::string& directory,
                                                 base::WallTime since);

}  // namespace score::shepherd
