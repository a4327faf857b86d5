// This module is tested by tests/parts, which removes the parts.
#include "scored/job/probe/parts_search.hpp"

#include "base/os/spawn.hpp"

#include <linux/io_uring.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::probe {
namespace {

// The shepherd and the launcher look in the same folders, which are next to this program.
std::string path_of(std::string_view name) {
  return base::find_beside(name, {".", "../../sbin", "../../bin"});
}

bool has_io_uring() {
  io_uring_params parameters{};
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
  if (ring >= 0) close(ring);
  return ring >= 0;
}

}  // namespace

bool has_part(std::string_view name, std::string_view provider) {
  if (name == "libpm-fi.so") return !provider.empty();
  if (name == "io_uring") return has_io_uring();
  if (name == "/dev/shm") return access("/dev/shm", W_OK | X_OK) == 0;
  if (name == "/dev/fuse") return access("/dev/fuse", R_OK | W_OK) == 0;
  if (name == "fusermount3") return access("/usr/bin/fusermount3", X_OK) == 0;
  return name.starts_with("scored-") ? !path_of(name).empty()
                                     : base::find_in_path(std::string(name)).has_value();
}

std::vector<std::string> readable_programs() {
  std::vector<std::string> found;
  for (const auto* name :
       {"scored-shepherd", "scored-pmix", "scored-stacks", "scored-pario", "scored-pario-mount"}) {
    const std::string path = path_of(name);

    struct stat info {};

    if (stat(path.c_str(), &info) != 0 || info.st_uid == getuid()) continue;
    if (access(path.c_str(), R_OK) == 0) found.push_back(path);
  }
  return found;
}

}  // namespace score::probe
