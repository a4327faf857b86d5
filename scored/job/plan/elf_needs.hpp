#pragma once
// The shared libraries a program asks for, read from its file. The file is the user's and may be
// anything: every offset is checked.

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

// Names of DT_NEEDED of a 64-bit little-endian ELF file, in order; empty for anything else (a
// script, a static program). Reads at most a few hundred KiB.
// Errors: errno codes (cannot be opened or read).
base::Result<std::vector<std::string>> needed_libraries(const std::string& path);

// Whether a name among the file's dynamic symbols, defined or not, is or ends with `name`: names
// share their ends in the file. False for anything that is no such file, or cannot be read.
bool has_dynamic_name(const std::string& path, std::string_view name);

// The program's dynamic linker (PT_INTERP), empty as above. Errors: as above.
base::Result<std::string> dynamic_linker(const std::string& path);

// Whether the program is there to start others: a script, or a shell or other interpreter, whose
// script is an argument, by its name.
bool starts_other_programs(const std::string& path);

// The process management that an MPI library linked in wants.
enum class MpiLibrary { Unknown, Mpich, OpenMpi };
MpiLibrary mpi_library_of(const std::vector<std::string>& needed);

}  // namespace score::shepherd
