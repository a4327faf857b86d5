#include "scored/privileged/thaw/thaw.hpp"

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

namespace score::thaw {

namespace {

// A missing file needs no writing.
void write_zero(int root, const char* directory, const char* file) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  const int control = openat(root, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (control < 0) return;
  if (write(control, "0", 1) != 1) {
    fprintf(stderr, "Cannot thaw path=%s err=\"%s\"\n", path, strerror(errno));
  }
  close(control);
}

// Finds the mount point of the hierarchy of this type, with this option if it is not null; "" if
// there is none.
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

// Finds the path in line "0::/path", or in "7:cpu,cpuacct:/path" of the controller; "" if there is
// none.
void find_path(const char* controller, char (&path)[PATH_MAX]) {
  path[0] = '\0';
  FILE* file = fopen("/proc/self/cgroup", "re");
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

// Sets the prefix of the names of the jobs' cpu directories; "" if it cannot be determined.
void name_cpu_jobs(int cgroup_root, char (&start)[48]) {
  struct stat info {};

  start[0] = '\0';
  if (fstat(cgroup_root, &info) != 0) return;
  snprintf(start, sizeof start, "scored_%llu_job_", static_cast<unsigned long long>(info.st_ino));
}

// Calls `act` with the name of each entry that begins with `start`. Returns the number of entries.
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

// The directory is opened each time, because the nodes of a host make and remove it together.
void raise_cpu_jobs(int cpu, const char* start) {
  const int jobs = openat(cpu, "scored/jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (jobs < 0) return;
  for_each(jobs, start, [&](const char* job) { write_zero(jobs, job, "cpu.idle"); });
  close(jobs);
}

bool leave_leaf(char (&path)[PATH_MAX], const char* leaf) {
  const std::size_t length = strlen(path);
  if (length < strlen(leaf) || strcmp(path + length - strlen(leaf), leaf) != 0) return false;
  path[length - strlen(leaf)] = '\0';
  return true;
}

// Opens the directory if its file system is of that type. Otherwise returns -1 and sets errno.
int open_directory(const char* path, unsigned type) {
  const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;

  struct statfs info {};

  if (fstatfs(directory, &info) == 0 && static_cast<unsigned>(info.f_type) == type) {
    return directory;
  }
  close(directory);
  errno = ENOTSUP;
  return -1;
}

// Finds the mount point and the path of this process, in the hierarchy that find_mount() finds.
bool find_own(const char* type, const char* controller, char (&mount)[PATH_MAX],
              char (&path)[PATH_MAX]) {
  find_mount(type, controller, mount);
  find_path(controller, path);
  errno = ENOTSUP;
  if (mount[0] == '\0' || path[0] == '\0') return false;
  if (controller == nullptr && !leave_leaf(path, "/daemon")) leave_leaf(path, "/.control");
  return true;
}

int open_below(const char* mount, const char* path, const char* name, unsigned magic) {
  char whole[2 * PATH_MAX + 64];
  snprintf(whole, sizeof whole, "%s%s%s", mount, path, name);
  return open_directory(whole, magic);
}

int open_own(const char* type, const char* controller, unsigned magic) {
  char mount[PATH_MAX];
  char path[PATH_MAX];
  if (!find_own(type, controller, mount, path)) return -1;
  return open_below(mount, path, "", magic);
}

// The same rule is in base/os/cgroup.cpp.
int open_jobs_unit() {
  char mount[PATH_MAX];
  char path[PATH_MAX];
  if (!find_own("cgroup2", nullptr, mount, path)) return -1;
  *strrchr(path, '/') = '\0';
  return open_below(mount, path, "/scored-jobs.service", CGROUP2_SUPER_MAGIC);
}

}  // namespace

bool open_places(const char* path, Places& places) {
  places.cgroups = path != nullptr ? open_directory(path, CGROUP2_SUPER_MAGIC)
                                   : open_own("cgroup2", nullptr, CGROUP2_SUPER_MAGIC);
  if (places.cgroups < 0) return false;
  places.cpu = open_own("cgroup", "cpu", CGROUP_SUPER_MAGIC);
  return true;
}

bool open_jobs_unit(Places& places) {
  places.cgroups = open_jobs_unit();
  places.cpu = -1;
  return places.cgroups >= 0;
}

// Restores the priority first, so that the tasks continue at the right one.
int thaw_cgroups(const Places& places) {
  if (places.cgroups < 0) return 0;
  char start[48];
  name_cpu_jobs(places.cgroups, start);
  if (places.cpu >= 0 && start[0] != '\0') raise_cpu_jobs(places.cpu, start);
  return for_each(places.cgroups, "job_", [&](const char* job) {
    write_zero(places.cgroups, job, "cpu.idle");
    write_zero(places.cgroups, job, "tasks/cgroup.freeze");
    write_zero(places.cgroups, job, "cgroup.freeze");
  });
}

}  // namespace score::thaw
