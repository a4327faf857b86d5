// This file is tested by scored/job/scratch/scratch_test.cpp.
#include "base/os/unmount.hpp"

#include "base/os/spawn.hpp"

#include <cerrno>
#include <sys/mount.h>
#include <tuple>
#include <unistd.h>

namespace score::inline base {

Status unmount(const std::string& directory) {
  if (geteuid() == 0) {
    const bool is_gone = umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0 ||
                         errno == EINVAL || errno == ENOENT;
    if (is_gone) return {};
    return fail(errno_code(errno), "cannot unmount {}", directory);
  }
  SpawnSpec spec;
  spec.path = "/usr/bin/fusermount3";
  spec.argv = {"fusermount3", "-u", "-q", "-z", directory};
  spec.environment = {"PATH=/usr/bin:/bin"};
  auto unmounter = spawn(spec);
  if (!unmounter) return unmounter.error();
  // The command also fails where there is no mount. A mount that remains prevents the removal of
  // the directory.
  std::ignore = reap(unmounter->pidfd.get(), true);
  return {};
}

}  // namespace score::inline base
