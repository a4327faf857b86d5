#pragma once
// Implements --net=pm: sets the variables that make an MPI library choose the libfabric provider
// `pm`, and checks that the program's MPI library can use it.

#include "scored/job/plan/elf_needs.hpp"
#include "scored/job/plan/plan.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// Returns "NAME=value" strings for every task. The working directory must be the job's.
// Errors: NotFound (the provider is not installed on this node), Unsupported (the program's MPI
// library cannot use it); the text says what would work.
base::Result<std::vector<std::string>> pm_variables(const Plan& plan);

// Returns the directory of libpm-fi.so, which is next to or near this program; empty if it is not
// installed.
std::string provider_directory();

// Returns the paths of the libraries that a program loads, as its own dynamic linker finds them
// with the job's variables. The result is empty if the linker does not list them.
std::vector<std::string> libraries_of(const std::string& program, const Plan& plan);

// Returns the MPI library that a program is linked to, directly or through other libraries. The
// result is Unknown for programs that exist to start others.
MpiLibrary linked_mpi_of(const std::string& program, const Plan& plan);

// Returns true if all programs of this node are linked to an MPI library; pm_variables() has then
// checked that library. The working directory must be the job's.
bool is_linked_to_mpi(const Plan& plan);

// Returns why this MPI library cannot use libfabric; empty if it can. libraries: paths of all that
// a program loads. Reads the library's folder and, if that does not decide it, the library itself.
std::string ofi_objection(const std::vector<std::string>& libraries);

// Does the same for a running task, which may be a script. Returns the objection to the first
// process, among the task and its descendants, that has loaded such a library. The result is also
// empty for processes that this one may not inspect.
std::string ofi_objection_of_task(pid_t task);

struct LoadedMpi {
  MpiLibrary kind = MpiLibrary::Unknown;
  std::string path;
};

// Returns the MPI library that a running task or the first of its descendants has loaded; Unknown
// if there is none.
LoadedMpi mpi_of_task(pid_t task);

// Returns how many processes, of a running task and its descendants, have loaded an MPI library.
std::size_t count_mpi_processes(pid_t task);

}  // namespace score::shepherd
