#pragma once
// Saves and restores named files of /dev/shm that tasks have mapped, such as MPICH's. criu opens
// such a file again by its name, and a job that is killed loses its files. Unlinked files are
// criu's.

#include "base/result.hpp"

#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// Where POSIX shared memory lies; tests name another directory.
inline constexpr const char* kSharedMemory = "/dev/shm";

// Returns the names in kSharedMemory that the processes have mapped or open, each once.
std::vector<std::string> shared_memory_of(std::span<const pid_t> processes);

// Copies the files into the directory, which is `directory`, under names with a prefix. Errors:
// errno codes.
base::Status save_shared_memory(const std::vector<std::string>& names, const std::string& directory,
                                const std::string& memory = kSharedMemory);

// Makes the saved files again. Errors: errno codes; Exists. After an error none is left.
base::Status restore_shared_memory(const std::string& directory,
                                   const std::string& memory = kSharedMemory);

}  // namespace score::shepherd
