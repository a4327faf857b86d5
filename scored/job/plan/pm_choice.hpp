#pragma once
// --net=pm: what makes an MPI library choose the libfabric provider `pm`, and whether the one a
// program is linked to can choose it at all.

#include "scored/job/plan/elf_needs.hpp"
#include "scored/job/plan/plan.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// "NAME=value" for every task. The working directory must be the job's.
// Errors: NotFound (the provider is not installed on this node), Unsupported (the program's MPI
// library cannot use it); the text names what would work.
base::Result<std::vector<std::string>> pm_variables(const Plan& plan);

// Where libpm-fi.so is, beside or near this program. Empty: not installed.
std::string provider_directory();

// Paths of the libraries that a program loads, as its own dynamic linker finds them with the job's
// variables; empty if it does not say.
std::vector<std::string> libraries_of(const std::string& program, const Plan& plan);

// Whether all programs of this node are linked to an MPI library, at which pm_variables() has
// looked then. The working directory must be the job's.
bool is_linked_to_mpi(const Plan& plan);

// Why this MPI library cannot use libfabric, or nothing. libraries: paths of all that a program
// loads. Reads the library's folder and, if that does not decide it, the library itself.
std::string ofi_objection(const std::vector<std::string>& libraries);

// The same for a running task, perhaps a script: the objection to the first of it and its
// descendants that has loaded such a library. Empty too for processes that this one may not
// inspect.
std::string ofi_objection_of_task(pid_t task);

struct LoadedMpi {
  MpiLibrary kind = MpiLibrary::Unknown;
  std::string path;
};

// The MPI library that a running task or the first of its descendants has loaded; Unknown: none.
LoadedMpi mpi_of_task(pid_t task);

}  // namespace score::shepherd
