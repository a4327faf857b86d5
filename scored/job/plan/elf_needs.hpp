#pragma once
// Reads from a program's file the shared libraries that it needs. The file belongs to the user and
// may contain anything, so every offset is checked.

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

// Returns the names of DT_NEEDED of a 64-bit little-endian ELF file, in order. The result is empty
// for any other file (a script, a static program). Reads at most a few hundred KiB.
// Errors: errno codes (cannot be opened or read).
base::Result<std::vector<std::string>> needed_libraries(const std::string& path);

// Returns true if a dynamic symbol of the file, defined or not, has a name that is or ends with
// `name`; names share their ends in the file. Returns false if the file is of a different kind or
// cannot be read.
bool has_dynamic_name(const std::string& path, std::string_view name);

// Returns the program's dynamic linker (PT_INTERP), or an empty string as above. Errors: as above.
base::Result<std::string> dynamic_linker(const std::string& path);

// Returns true if the program exists to start others: a script, or by its name a shell, another
// interpreter, whose script is an argument, or a wrapper such as numactl.
bool starts_other_programs(const std::string& path);

// The MPI library that a program is linked to; it determines the process management.
enum class MpiLibrary { Unknown, Mpich, OpenMpi };
MpiLibrary mpi_library_of(const std::vector<std::string>& needed);

}  // namespace score::shepherd
