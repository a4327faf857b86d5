#include "scored/job/checkpoint/shared_memory.hpp"

#include "base/errc.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "shm-";
constexpr std::string_view kUnlinked = " (deleted)";
constexpr std::size_t kMostMaps = 64U << 20U;
constexpr mode_t kPermissions = 0777;

// Adds the name of a path in shared memory ("/dev/shm/mpich_1").
void add_name(std::string_view path, std::set<std::string>& names) {
  const std::string_view directory = kSharedMemory;
  if (!path.starts_with(directory) || path.ends_with(kUnlinked)) return;
  path.remove_prefix(directory.size());
  const bool is_plain = path.size() > 1 && path.rfind('/') == 0;
  if (is_plain) names.emplace(path.substr(1));
}

base::Error refused_call(std::string_view what, const std::string& path) {
  return base::fail(base::errno_code(errno), "cannot {} {}", what, path);
}

bool copy_piece(int from, int to, off_t at, off_t end) {
  constexpr std::size_t kPiece = 1U << 18U;
  std::vector<char> piece(kPiece);
  while (at < end) {
    const auto most = std::min<std::size_t>(kPiece, static_cast<std::size_t>(end - at));
    const ssize_t got = pread(from, piece.data(), most, at);
    if (got < 0 && errno == EINTR) continue;
    const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    if (got <= 0 || pwrite(to, piece.data(), bytes, at) != got) return false;
    at += got;
  }
  return true;
}

bool copy_data(int from, int to, off_t size) {
  if (ftruncate(to, size) != 0) return false;
  for (off_t at = 0; at < size;) {
    const off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return true;  // only a hole is left
    const off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    if (hole < 0) return false;
    if (!copy_piece(from, to, data, hole)) return false;
    at = hole;
  }
  return true;
}

// The new file must not exist.
base::Status copy_memory_file(const std::string& from, const std::string& to) {
  const base::UniqueFd source(open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));

  struct stat info {};

  if (!source || fstat(source.get(), &info) != 0) return refused_call("open", from);
  if (!S_ISREG(info.st_mode)) return base::fail(base::Errc::Unsupported, "{} is no file", from);
  const base::UniqueFd copy(
      open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!copy) return refused_call("make", to);
  const bool is_whole = fchmod(copy.get(), info.st_mode & kPermissions) == 0 &&
                        copy_data(source.get(), copy.get(), info.st_size);
  if (is_whole) return {};
  const auto error = refused_call("write", to);
  unlink(to.c_str());
  return error;
}

}  // namespace

std::vector<std::string> shared_memory_of(std::span<const pid_t> processes) {
  std::set<std::string> names;
  for (const pid_t process : processes) {
    const auto maps = base::read_file(fmt::format("/proc/{}/maps", process), kMostMaps);
    for (const auto line : base::split(maps ? std::string_view(*maps) : "", '\n')) {
      const auto slash = line.find('/');
      if (slash != line.npos) add_name(line.substr(slash), names);
    }
    std::error_code error;
    for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), error), end;
         !error && at != end; at.increment(error)) {
      std::error_code gone;
      add_name(fs::read_symlink(at->path(), gone).string(), names);
    }
  }
  return {names.begin(), names.end()};
}

base::Status save_shared_memory(const std::vector<std::string>& names, const std::string& directory,
                                const std::string& memory) {
  for (const std::string& name : names) {
    auto copied = copy_memory_file(fmt::format("{}/{}", memory, name),
                                   fmt::format("{}/{}{}", directory, kPrefix, name));
    if (!copied) return copied;
  }
  return {};
}

base::Status restore_shared_memory(const std::string& directory, const std::string& memory) {
  std::vector<std::string> made;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const std::string path = fmt::format("{}/{}", memory, name.substr(kPrefix.size()));
    const auto copied = copy_memory_file(at->path(), path);
    if (copied) {
      made.push_back(path);
      continue;
    }
    for (const std::string& other : made) unlink(other.c_str());
    if (!copied.error().is(std::errc::file_exists)) return copied;
    return base::fail(base::Errc::Exists, "{} exists already", path);
  }
  return error ? base::Status(base::fail(error, "cannot read {}", directory)) : base::Status();
}

}  // namespace score::shepherd
