#include "base/os/pmix_directory.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::inline base {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kParents{"/dev/shm", "/tmp"};
constexpr std::string_view kPrefix = "scored-pmix.";
constexpr int kAttempts = 100;  // another process may take one for abandoned before it is locked

// Returns the lock, or nothing if the path is a link, belongs to a different user, is gone, or is
// in use.
UniqueFd lock_directory(const std::string& path) {
  auto directory = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return {};

  struct stat info {};

  const bool is_ours = fstat(directory->get(), &info) == 0 && info.st_uid == geteuid();
  if (!is_ours || flock(directory->get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Another process may have removed the directory in the meantime.
  if (fstat(directory->get(), &info) != 0 || info.st_nlink == 0) return {};
  return std::move(*directory);
}

}  // namespace

PmixDirectory::PmixDirectory(PmixDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

PmixDirectory& PmixDirectory::operator=(PmixDirectory&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  lock_ = std::move(other.lock_);
  return *this;
}

Result<PmixDirectory> PmixDirectory::make() {
  remove_abandoned_pmix_directories();
  if (auto made = make_in(kParents[0])) return made;
  return make_in(kParents[1]);
}

Result<PmixDirectory> PmixDirectory::make_in(const std::string& parent) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = fmt::format("{}/{}XXXXXX", parent, kPrefix);
    if (mkdtemp(path.data()) == nullptr) break;
    if (auto lock = lock_directory(path)) return PmixDirectory(std::move(path), std::move(lock));
  }
  return fail(errno_code(errno), "cannot make a directory in {}", parent);
}

void PmixDirectory::remove() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  path_.clear();
  lock_.reset();
}

int remove_abandoned_pmix_directories() {
  int removed = 0;
  for (const char* parent : kParents) removed += remove_abandoned_pmix_directories_in(parent);
  return removed;
}

int remove_abandoned_pmix_directories_in(const std::string& parent) {
  int removed = 0;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().native().starts_with(kPrefix)) continue;
    const auto lock = lock_directory(at->path());
    std::error_code failed;
    if (lock && fs::remove_all(at->path(), failed) > 0 && !failed) ++removed;
  }
  return removed;
}

}  // namespace score::inline base
