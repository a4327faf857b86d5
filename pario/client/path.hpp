// Resolves paths of the C library: from the root of a volume, component by component.
#pragma once

#include "pario/client/volume.hpp"

namespace score::pario {

// The root is "" or "/". Errors: ENOENT, ENOTDIR, EINVAL ("." and ".."), ENAMETOOLONG (a component
// of more than 255 bytes, a path of more than 4095).
int find_path(Volume& volume, std::string_view path, FileStatus& status);
// Finds the directory of the last component, which need not exist. Returns EINVAL for the root.
int find_parent(Volume& volume, std::string_view path, Volume::Name& name);

}  // namespace score::pario
