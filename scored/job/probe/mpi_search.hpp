#pragma once
// Finds MPI libraries of this host where the dynamic linker looks: LD_LIBRARY_PATH, the lines of
// ld.so.conf, and its default folders. Libraries of modules that are not loaded are not found.

#include <string>
#include <vector>

namespace score::probe {

// Returns the folders in that order, without repeats. conf: the path of ld.so.conf, whose include
// lines are followed one level deep.
std::vector<std::string> library_folders(const std::string& library_path, const std::string& conf);

// Returns libmpi.so.N and libmpich.so.N in these folders; several names of one file count once.
std::vector<std::string> find_mpi(const std::vector<std::string>& folders);

}  // namespace score::probe
