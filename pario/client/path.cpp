#include "pario/client/path.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

namespace score::pario {
namespace {

constexpr std::size_t kMaxPath = 4'095;

// Removes and returns the first component; empty at the end.
std::string_view take_first(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::string_view first = path.substr(0, path.find('/'));
  path.remove_prefix(first.size());
  return first;
}

}  // namespace

int find_path(Volume& volume, std::string_view path, FileStatus& status) {
  if (path.size() > kMaxPath) return ENAMETOOLONG;
  std::string_view name = take_first(path);
  if (name.empty()) return volume.status(kRootId, status);
  Entry parent{kRootId, S_IFDIR, {}};
  for (;;) {
    if (!S_ISDIR(parent.mode)) return ENOTDIR;
    const std::string_view next = take_first(path);
    if (next.empty()) return volume.lookup(parent.id, name, status);
    if (const int error = volume.find(parent.id, name, parent)) return error;
    name = next;
  }
}

int find_parent(Volume& volume, std::string_view path, Volume::Name& name) {
  if (path.size() > kMaxPath) return ENAMETOOLONG;
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  name.name = slash == path.npos ? path : path.substr(slash + 1);
  if (name.name.empty()) return EINVAL;
  Entry parent{kRootId, S_IFDIR, {}};
  std::string_view above = path.substr(0, path.size() - name.name.size());
  for (std::string_view next = take_first(above); !next.empty(); next = take_first(above)) {
    if (!S_ISDIR(parent.mode)) return ENOTDIR;
    if (const int error = volume.find(parent.id, next, parent)) return error;
  }
  name.parent = parent.id;
  return S_ISDIR(parent.mode) ? 0 : ENOTDIR;
}

}  // namespace score::pario
