#include "scored/launcher/thaw.hpp"

#include <climits>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
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

// Where cgroup2 is mounted, with its whole tree; "" if it is not.
void find_mount(char (&point)[PATH_MAX]) {
  point[0] = '\0';
  FILE* mounts = setmntent("/proc/self/mounts", "re");
  if (mounts == nullptr) return;
  while (const mntent* entry = getmntent(mounts)) {
    if (strcmp(entry->mnt_type, "cgroup2") != 0) continue;
    snprintf(point, sizeof point, "%s", entry->mnt_dir);
    break;
  }
  endmntent(mounts);
}

// The path of line "0::/path"; "" if there is none.
void find_path(pid_t pid, char (&path)[PATH_MAX]) {
  path[0] = '\0';
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
  FILE* file = fopen(name, "re");
  if (file == nullptr) return;
  char line[PATH_MAX];
  while (fgets(line, sizeof line, file) != nullptr) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "0::/", 4) == 0) snprintf(path, sizeof path, "%s", line + 3);
  }
  fclose(file);
}

}  // namespace

int open_cgroup_of(pid_t pid) {
  char mount[PATH_MAX];
  char path[PATH_MAX];
  find_mount(mount);
  find_path(pid, path);
  errno = ENOTSUP;
  if (mount[0] == '\0' || path[0] == '\0') return -1;
  constexpr const char* kLeaf = "/daemon";
  const std::size_t length = strlen(path);
  if (length >= strlen(kLeaf) && strcmp(path + length - strlen(kLeaf), kLeaf) == 0) {
    path[length - strlen(kLeaf)] = '\0';
  }
  char whole[2 * PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s", mount, path);
  return open_cgroup_root(whole);
}

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
