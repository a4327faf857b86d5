// Implements scio cp -r, which copies trees between this host and a volume.
#pragma once

#include "pario/client/pario.h"

#include <cstdint>
#include <string>

namespace score::pario {

struct TreeResult {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

// Copies a tree into the target if that is a directory, as cp -r does; otherwise the tree gets that
// name. Modes, times of files and symbolic links are kept; FIFOs, sockets and devices are left out,
// with a message. These functions throw std::string, an error text for users.
TreeResult copy_tree_in(pario_volume* volume, const std::string& local, const std::string& path);
TreeResult copy_tree_out(pario_volume* volume, const std::string& path, const std::string& local);

// Makes a directory with the layout `local`. Returns 0 or a negative errno value.
int make_local_directory(pario_volume* volume, const std::string& path);
// Prints the layout of a file, or of what is made in a directory.
void print_layout(pario_volume* volume, const struct stat& status);

}  // namespace score::pario
