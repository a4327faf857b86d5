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
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace score::scout {

namespace {

namespace fs = std::filesystem;

// A socket of a cluster has a path of up to 60 bytes below this directory, and an address holds
// 107.
constexpr std::size_t kLongestTemporary = 40;

// Returns $TMPDIR, or /tmp if that is not set, too long or not writable for us.
std::string temporary_directory() {
  const char* own = std::getenv("TMPDIR");
  const std::string path = own != nullptr ? own : "";
  std::error_code error;
  const bool is_usable = path.starts_with('/') && path.size() <= kLongestTemporary &&
                         fs::is_directory(path, error) && access(path.c_str(), W_OK | X_OK) == 0;
  return is_usable ? path : "/tmp";
}

std::string base_path(const std::string& name) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");

  struct stat info {};

  if (runtime != nullptr && *runtime == '/' && stat(runtime, &info) == 0 &&
      info.st_uid == geteuid() && access(runtime, W_OK) == 0) {
    return std::string(runtime) + "/" + name;
  }
  return temporary_directory() + "/" + name + "-" + std::to_string(geteuid());
}

Status check_private(const std::string& path) {
  struct stat info {};

  if (lstat(path.c_str(), &info) != 0) return fail(errno_code(errno), "{}", path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return fail(Errc::Denied, "{} must be your own directory with mode 0700", path);
  }
  return {};
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

// Creates the directory `path`, or finds it. In a directory that others may write, any program can
// occupy that name. Then the result is `path`.XXXXXX, a name of mkdtemp(), which the next call
// finds again.
Result<std::string> private_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno_code(errno), "cannot create {}", path);
  if (check_private(path)) return path;
  auto others = directories_in(fs::path(path).parent_path());
  std::sort(others.begin(), others.end());  // two programs choose the same one
  for (const auto& other : others) {
    if (other.starts_with(path + ".") && check_private(other)) return other;
  }
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
  const auto path = private_directory(base_path(name));
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

std::vector<std::string> Registry::living() const {
  std::vector<std::string> found;
  for (auto& directory : directories_in(path_)) {
    if (is_alive(directory)) found.push_back(std::move(directory));
  }
  return found;
}

}  // namespace score::scout
