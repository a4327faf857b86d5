#include "scored/launcher/thaw.hpp"

#include <climits>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::launcher {

namespace {

// What is not there needs no writing.
void write_zero(int root, const char* directory, const char* file) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  const int control = openat(root, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (control < 0) return;
  if (write(control, "0", 1) != 1) {
    fprintf(stderr, "thaw failed path=%s err=\"%s\"\n", path, strerror(errno));
  }
  close(control);
}

// Where the hierarchy of this type, with this option if it is not null, is mounted; "" if it is
// not.
void find_mount(const char* type, const char* option, char (&point)[PATH_MAX]) {
  point[0] = '\0';
  FILE* mounts = setmntent("/proc/self/mounts", "re");
  if (mounts == nullptr) return;
  while (const mntent* entry = getmntent(mounts)) {
    if (strcmp(entry->mnt_type, type) != 0) continue;
    if (option != nullptr && hasmntopt(entry, option) == nullptr) continue;
    snprintf(point, sizeof point, "%s", entry->mnt_dir);
    break;
  }
  endmntent(mounts);
}

bool has_word(char* list, const char* word) {
  char* rest = nullptr;
  for (char* part = strtok_r(list, ",", &rest); part != nullptr;
       part = strtok_r(nullptr, ",", &rest)) {
    if (strcmp(part, word) == 0) return true;
  }
  return false;
}

// The path of line "0::/path", or "7:cpu,cpuacct:/path" of the controller; "" if there is none.
void find_path(pid_t pid, const char* controller, char (&path)[PATH_MAX]) {
  path[0] = '\0';
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
  FILE* file = fopen(name, "re");
  if (file == nullptr) return;
  char line[PATH_MAX];
  while (fgets(line, sizeof line, file) != nullptr) {
    line[strcspn(line, "\n")] = '\0';
    char* list = strchr(line, ':');
    char* start = list == nullptr ? nullptr : strchr(list + 1, ':');
    if (start == nullptr || start[1] != '/') continue;
    *start = '\0';
    const bool is_it = controller == nullptr ? list[1] == '\0' : has_word(list + 1, controller);
    if (is_it) snprintf(path, sizeof path, "%s", start + 1);
  }
  fclose(file);
}

// How the names of the jobs' cpu directories begin; "" if that cannot be known.
void name_cpu_jobs(int cgroup_root, char (&start)[48]) {
  struct stat info {};

  start[0] = '\0';
  if (fstat(cgroup_root, &info) != 0) return;
  snprintf(start, sizeof start, "scored_%llu_job_", static_cast<unsigned long long>(info.st_ino));
}

// Calls `act` with the name of each entry that begins so. How many there are.
template <class Act>
int for_each(int root, const char* start, Act&& act) {
  const int again = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = again < 0 ? nullptr : fdopendir(again);
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (strncmp(entry->d_name, start, strlen(start)) != 0) continue;
    act(entry->d_name);
    ++count;
  }
  closedir(directory);
  return count;
}

}  // namespace

int open_cgroup_of(pid_t pid) {
  char mount[PATH_MAX];
  char path[PATH_MAX];
  find_mount("cgroup2", nullptr, mount);
  find_path(pid, nullptr, path);
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

int open_cpu_root_of(pid_t pid) {
  char mount[PATH_MAX];
  char path[PATH_MAX];
  find_mount("cgroup", "cpu", mount);
  find_path(pid, "cpu", path);
  if (mount[0] == '\0' || path[0] == '\0') return -1;
  char whole[2 * PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s", mount, path);
  const int root = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;

  struct statfs info {};

  if (fstatfs(root, &info) == 0 && info.f_type == CGROUP_SUPER_MAGIC) return root;
  close(root);
  return -1;
}

int open_cpu_tasks(int cpu_root, int cgroup_root, std::uint64_t attempt) {
  char start[48];
  name_cpu_jobs(cgroup_root, start);
  char path[96];
  snprintf(path, sizeof path, "%s%llu/tasks", start, static_cast<unsigned long long>(attempt));
  return openat(cpu_root, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
}

// Priority first: what goes on does so at the right one.
int thaw_cgroups(int root, int cpu_root) {
  char start[48];
  name_cpu_jobs(root, start);
  if (cpu_root >= 0 && start[0] != '\0') {
    for_each(cpu_root, start, [&](const char* job) { write_zero(cpu_root, job, "cpu.idle"); });
  }
  return for_each(root, "job_", [&](const char* job) {
    write_zero(root, job, "cpu.idle");
    write_zero(root, job, "tasks/cgroup.freeze");
    write_zero(root, job, "cgroup.freeze");
  });
}

}  // namespace score::launcher
