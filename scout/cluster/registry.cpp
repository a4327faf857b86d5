#include "scout/cluster/registry.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/pmix_directory.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/cluster/reaper.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace score::scout {

namespace {

namespace fs = std::filesystem;

// The address of a Unix socket holds 107 bytes. The longest name below `path` of possible_paths()
// is this one, with the user id before ".sock".
constexpr std::size_t kLongestAddress = 107;
constexpr std::string_view kLongestName = ".XXXXXX/XXXXXX/node0000/shepherds/123456789..sock";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Returns true if a registry can be created in the directory.
bool is_usable(const std::string& place) {
  std::error_code error;
  return place.starts_with('/') && fs::is_directory(place, error) &&
         access(place.c_str(), W_OK | X_OK) == 0;
}

// A user namespace shows the files of all unmapped users with one id, which may equal the id of
// this process. access() still fails for them.
bool is_own(const std::string& directory) {
  struct stat info {};

  return lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid() && access(directory.c_str(), W_OK | X_OK) == 0;
}

bool is_private(const std::string& directory) {
  struct stat info {};

  return is_own(directory) && lstat(directory.c_str(), &info) == 0 && (info.st_mode & 077) == 0;
}

// Returns the paths that a registry may have, the preferred one first.
std::vector<std::string> possible_paths(const std::string& name) {
  std::vector<std::string> paths;
  const std::string runtime = variable("XDG_RUNTIME_DIR");
  if (is_usable(runtime) && is_own(runtime)) paths.push_back(runtime + "/" + name);
  for (const std::string& place : {variable("TMPDIR"), std::string("/tmp")}) {
    if (is_usable(place)) paths.push_back(fmt::format("{}/{}-{}", place, name, geteuid()));
  }
  const std::size_t most = kLongestAddress - kLongestName.size() - std::to_string(geteuid()).size();
  std::erase_if(paths, [most](const std::string& path) { return path.size() > most; });
  return paths;
}

// Opens and locks the lock file. Errors: EAGAIN if a different process holds the lock, ENOENT
// unless the file may be created.
Result<UniqueFd> take_lock(const std::string& path, int operation, int open_flags) {
  auto file = open_file(path, O_RDWR | O_NOFOLLOW | open_flags, 0600);
  if (!file) return file.error();
  if (flock(file->get(), operation) != 0) return fail(errno_code(errno), "cannot lock {}", path);
  return file;
}

std::vector<std::string> directories_in(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) found.push_back(entry.path());
  }
  return found;
}

// In a directory that others may write, any program can occupy a name. Then the registry has a name
// of mkdtemp(). Returns our directories `path` and `path`.XXXXXX, in the same order in all
// programs.
std::vector<std::string> registries_at(const std::string& path) {
  std::vector<std::string> found;
  for (auto& other : directories_in(fs::path(path).parent_path())) {
    if (other.starts_with(path + ".") && is_private(other)) found.push_back(std::move(other));
  }
  std::sort(found.begin(), found.end());
  if (is_private(path)) found.insert(found.begin(), path);
  return found;
}

Result<std::string> private_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno_code(errno), "cannot create {}", path);
  if (const auto found = registries_at(path); !found.empty()) return found.front();
  std::string made = path + ".XXXXXX";
  if (mkdtemp(made.data()) == nullptr) return fail(errno_code(errno), "cannot create {}", made);
  return made;
}

}  // namespace

Status make_directory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 || chmod(path.c_str(), mode) != 0)
    return fail(errno_code(errno), "cannot create {}", path);
  return {};
}

bool is_alive(const std::string& directory) {
  auto lock = take_lock(directory + "/" + kLockFile, LOCK_EX | LOCK_NB, 0);
  return !lock && lock.error().is(std::errc::resource_unavailable_try_again);
}

bool wait_until_gone(const std::string& directory) {
  const TimePoint deadline = monotonic_now() + std::chrono::seconds{15};
  while (fs::exists(directory)) {
    if (monotonic_now() > deadline) return false;
    pause_briefly();
  }
  return true;
}

// A directory of a different user could name any process or cgroup, so it is rejected.
Status clear_directory(const std::string& directory) {
  struct stat info {};

  if (lstat(directory.c_str(), &info) != 0) return fail(errno_code(errno), "{}", directory);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
    return fail(Errc::Denied, "{}: stop it as its owner, user {}", directory, info.st_uid);
  }
  const auto cgroup = read_file(directory + "/" + kCgroupFile, 4096);
  const bool is_ours = cgroup && fs::path(*cgroup).filename().native().starts_with(kCgroupPrefix);
  if (is_ours) clear_cgroup(*cgroup);
  kill_users_of(directory);
  remove_abandoned_pmix_directories();
  return remove_files(directory);
}

// The lock is removed last: while it exists and is held, no other process touches the rest.
Status remove_files(const std::string& directory) {
  std::error_code error;
  const auto scratch = fs::read_symlink(directory + "/" + Layout::kScratchName, error);
  if (!scratch.empty()) {
    unmount_below(scratch);
    fs::remove_all(scratch, error);
  }
  unmount_below(directory);
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().filename() != kLockFile) fs::remove_all(entry.path(), error);
  }
  fs::remove_all(directory, error);
  if (error && fs::exists(directory)) return Error(error, "cannot remove " + directory);
  return {};
}

Result<Registry> Registry::open(const std::string& name) {
  const auto possible = possible_paths(name);
  if (possible.empty()) {
    return fail(Errc::Denied,
                "/tmp is not writable: set TMPDIR to a writable directory with a short path");
  }
  const auto path = private_directory(possible.front());
  if (!path) return path.error();
  auto lock = open_file(*path + "/.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!lock) return lock.error();
  return Registry(*path, std::move(*lock));
}

void Registry::sweep() {
  if (flock(lock_.get(), LOCK_EX) != 0) return;
  for (const auto& directory : directories_in(path_)) {
    if (!is_alive(directory)) std::ignore = clear_directory(directory);
  }
  flock(lock_.get(), LOCK_UN);
}

Result<ClusterDirectory> Registry::create() {
  sweep();
  if (flock(lock_.get(), LOCK_EX) != 0) return fail(errno_code(errno), "cannot lock {}", path_);
  std::string path = path_ + "/XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return fail(errno_code(errno), "cannot create {}", path);
  // This waits, because is_alive() of a different process holds the lock for a moment.
  auto lock = take_lock(path + "/" + kLockFile, LOCK_EX, O_CREAT);
  flock(lock_.get(), LOCK_UN);
  if (!lock) return lock.error();
  return ClusterDirectory{.path = std::move(path), .lock = std::move(*lock)};
}

std::vector<std::string> Registry::living(const std::string& name) {
  auto paths = possible_paths(name);
  paths.push_back(fmt::format("/run/user/{}/{}", geteuid(), name));  // XDG_RUNTIME_DIR of sessions
  std::set<std::string> found;
  for (const auto& path : paths) {
    for (const auto& registry : registries_at(path)) {
      for (const auto& directory : directories_in(registry)) {
        if (is_alive(directory)) found.insert(directory);
      }
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace score::scout
