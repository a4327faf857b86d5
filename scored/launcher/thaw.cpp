#include "scored/launcher/thaw.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::launcher {

namespace {

void thaw_one(int root, const char* job, const char* below) {
  char path[320];
  snprintf(path, sizeof path, "%s%s/cgroup.freeze", job, below);
  const int control = openat(root, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (control < 0) return;
  if (write(control, "0", 1) != 1) {
    fprintf(stderr, "thaw failed path=%s err=\"%s\"\n", path, strerror(errno));
  }
  close(control);
}

}  // namespace

int open_cgroup_root(const char* path) {
  const int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;

  struct statfs info {};

  if (fstatfs(root, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) return root;
  close(root);
  errno = ENOTSUP;
  return -1;
}

int thaw_cgroups(int root) {
  const int again = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = again < 0 ? nullptr : fdopendir(again);
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (strncmp(entry->d_name, "job_", 4) != 0) continue;
    thaw_one(root, entry->d_name, "/tasks");
    thaw_one(root, entry->d_name, "");
    ++count;
  }
  closedir(directory);
  return count;
}

}  // namespace score::launcher
