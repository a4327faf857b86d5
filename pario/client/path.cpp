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
  FileStatus parent;
  parent.id = kRootId;
  const std::string_view above = path.substr(0, path.size() - name.name.size());
  if (above.find_first_not_of('/') != above.npos) {
    if (const int error = find_path(volume, above, parent)) return error;
    if (!S_ISDIR(parent.mode)) return ENOTDIR;
  }
  name.parent = parent.id;
  return 0;
}

}  // namespace score::pario
