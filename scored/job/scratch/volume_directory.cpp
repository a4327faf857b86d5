#include "scored/job/scratch/volume_directory.hpp"

#include "base/errc.hpp"
#include "base/model/model.hpp"
#include "base/os/unmount.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

constexpr int kTries = 10;  // a sweep may mistake a new directory for an abandoned one

std::string user_name() {
  return std::to_string(getuid());
}

// Opens a directory in which no other user can have replaced an entry.
base::Result<base::UniqueFd> open_own(int parent, const std::string& name,
                                      const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  base::UniqueFd own(openat(parent, name.c_str(), kFlags));
  if (!own) return base::fail(base::errno_code(errno), "cannot open {}/{}", path, name);

  struct stat info {};

  if (fstat(own.get(), &info) != 0 || info.st_uid != getuid() || (info.st_mode & 077) != 0) {
    return base::fail(base::Errc::Denied, "{}/{} is not a private directory of user {}", path, name,
                      getuid());
  }
  return own;
}

// Opens PATH/USER. In a cluster of one user the node's directory is the user's own, so PATH/USER is
// created here.
base::Result<base::UniqueFd> open_user(const std::string& path) {
  const base::UniqueFd parent(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return base::fail(base::errno_code(errno), "cannot open {}", path);
  const std::string name = user_name();
  if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::fail(base::errno_code(errno),
                      "cannot create {}/{}: the launcher of this node needs --scratch-dir {}", path,
                      name, path);
  }
  return open_own(parent.get(), name, path);
}

// Returns the lock; empty if the directory is in use, does not exist, or does not belong to this
// user.
base::UniqueFd lock_of(int user, const std::string& name, const std::string& path) {
  auto directory = open_own(user, name, path);
  if (!directory || flock(directory->get(), LOCK_EX | LOCK_NB) != 0) return {};

  struct stat info {};

  if (fstat(directory->get(), &info) != 0 || info.st_nlink == 0) return {};
  return std::move(*directory);
}

// Returns the name of a part's directory as its link has it.
std::string target_of(const std::string& directory) {
  return directory.substr(directory.rfind('/') + 1) + "/mount";
}

// Returns the attempt of a directory's name, ATTEMPT.INDEX. Earlier releases named it ATTEMPT.
std::optional<std::uint64_t> attempt_of(std::string_view name) {
  const auto dot = name.find('.');
  if (dot != name.npos && !base::parse_number<std::uint32_t>(name.substr(dot + 1))) return {};
  const auto number = base::parse_number<std::uint64_t>(name.substr(0, dot));
  return number ? std::optional(*number) : std::nullopt;
}

// Makes the link, unless it leads to a mount already. One of a killed shepherd may lead nowhere.
base::Status make_link(const std::string& directory) {
  const std::string link = VolumeDirectory::link_of(directory);
  for (int tries = 0; tries < kTries; ++tries) {
    if (symlink(target_of(directory).c_str(), link.c_str()) == 0) return {};
    if (errno != EEXIST) break;
    if (access(link.c_str(), F_OK) == 0) return {};
    if (unlink(link.c_str()) != 0 && errno != ENOENT) break;
  }
  return base::fail(base::errno_code(errno), "cannot create {}", link);
}

void remove_link(const std::string& directory) {
  const std::string link = VolumeDirectory::link_of(directory);
  std::error_code ignored;
  if (fs::read_symlink(link, ignored) == target_of(directory)) unlink(link.c_str());
}

base::Status remove_tree(const std::string& path) {
  remove_link(path);
  if (auto gone = base::unmount(VolumeDirectory::mount_of(path)); !gone) return gone;
  std::error_code error;
  fs::remove_all(path, error);  // follows no links
  if (error) return base::fail(error, "cannot remove {}", path);
  return {};
}

}  // namespace

std::string VolumeDirectory::path_of(const std::string& path, Part part) {
  return fmt::format("{}/{}/{}.{}", path, user_name(), part.attempt, part.index);
}

std::string VolumeDirectory::link_of(const std::string& directory) {
  return directory.substr(0, directory.rfind('.'));
}

std::string VolumeDirectory::mount_of(const std::string& directory) {
  return directory + "/mount";
}

std::string VolumeDirectory::description_of(const std::string& directory) {
  return directory + "/volume";
}

base::Result<VolumeDirectory> VolumeDirectory::make(const std::string& path, Part part) {
  auto user = open_user(path);
  if (!user) return user.error();
  const std::string whole = path_of(path, part);
  const std::string name = whole.substr(whole.rfind('/') + 1);
  for (int tries = 0; tries < kTries; ++tries) {
    const bool is_new = mkdirat(user->get(), name.c_str(), 0700) == 0;
    if (!is_new && errno != EEXIST)
      return base::fail(base::errno_code(errno), "cannot create {}", whole);
    base::UniqueFd lock = lock_of(user->get(), name, path);
    if (!lock && !is_new) return base::fail(base::Errc::Busy, "{} is in use", whole);
    if (!lock) continue;
    if (!is_new) {
      if (auto removed = remove_tree(whole); !removed) return removed.error();
      continue;
    }
    VolumeDirectory made(whole, std::move(lock));
    for (const std::string& inner : {made.data(), made.mount()}) {
      if (mkdir(inner.c_str(), 0700) != 0)
        return base::fail(base::errno_code(errno), "cannot create {}", inner);
    }
    if (auto linked = make_link(whole); !linked) return linked.error();
    return made;
  }
  return base::fail(base::Errc::Busy, "{} is being removed", whole);
}

base::Status VolumeDirectory::remove() {
  auto removed = remove_tree(path_);
  if (removed) lock_.reset();
  return removed;
}

std::string find_volume_of(const std::string& path, base::JobId job) {
  if (path.empty()) return {};
  std::uint64_t newest = 0;
  std::string found;
  std::error_code error;
  const std::string own = path + "/" + user_name();
  for (fs::directory_iterator at(own, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    const auto attempt = attempt_of(name);
    const bool is_part = name.find('.') != name.npos;
    if (!attempt || !is_part || base::job_of(base::AttemptId(*attempt)) != job) continue;
    const std::string description = VolumeDirectory::description_of(at->path());
    if (*attempt <= newest || access(description.c_str(), R_OK) != 0) continue;
    newest = *attempt;
    found = at->path();
  }
  return found;
}

SweepResult sweep_volumes(const std::string& path) {
  SweepResult swept;
  const base::UniqueFd parent(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto user = open_own(parent.get(), user_name(), path);
  if (!user) return swept;  // no volume was ever created
  const std::string own = path + "/" + user_name();
  std::error_code error;
  for (fs::directory_iterator at(own, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!attempt_of(name)) continue;
    const base::UniqueFd lock = lock_of(user->get(), name, path);
    if (!lock) continue;
    const auto removed = remove_tree(at->path());
    if (removed) ++swept.removed;
    if (!removed && swept.left.empty()) swept.left = removed.error().message();
  }
  return swept;
}

}  // namespace score::shepherd
