#include "pario/store/data_files.hpp"

#include "pario/core/times.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kMostOpen = 512;
constexpr std::uint64_t kBlock = 512;  // of st_blocks

std::uint64_t space_of(const struct stat& status) {
  return static_cast<std::uint64_t>(status.st_blocks) * kBlock;
}

// Parses the name of a data file.
bool parse_name(std::string_view name, FileId& id) {
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), id, 16);
  return name.size() == 16 && error == std::errc() && stop == name.data() + name.size();
}

// Returns true if all of the extents is already allocated, without holes.
bool is_allocated(int fd, const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    const off_t hole = ::lseek(fd, static_cast<off_t>(extent.offset), SEEK_HOLE);
    if (hole < 0 || static_cast<std::uint64_t>(hole) < extent.offset + extent.length) return false;
  }
  return true;
}

}  // namespace

int DataFiles::open(int root, const std::function<bool(FileId)>& is_left_over) {
  if (::mkdirat(root, "data", 0700) != 0 && errno != EEXIST) return errno;
  root_ = UniqueFd(::openat(root, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!root_) return errno;
  for (unsigned folder = 0; folder < kDataFolders; ++folder) {
    const std::string name = fmt::format("{:02x}", folder);
    if (::mkdirat(root_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return errno;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    const int fd = ::openat(root_.get(), name.c_str(), kFlags);
    if (fd < 0) return errno;
    if (const int error = scan(fd, is_left_over)) return error;
  }
  return 0;
}

int DataFiles::scan(int folder, const std::function<bool(FileId)>& is_left_over) {
  DIR* stream = ::fdopendir(folder);
  if (stream == nullptr) {
    const int error = errno;
    ::close(folder);
    return error;
  }
  while (const dirent* entry = ::readdir(stream)) {
    FileId id = 0;

    struct stat status {};

    if (!parse_name(entry->d_name, id)) continue;
    if (is_left_over(id)) {
      ::unlinkat(folder, entry->d_name, 0);
    } else if (::fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      quota_.settle(0, 0, space_of(status));
    }
  }
  ::closedir(stream);
  return 0;
}

int DataFiles::list(std::vector<FileId>& files) {
  for (unsigned folder = 0; folder < kDataFolders; ++folder) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    const int fd = ::openat(root_.get(), fmt::format("{:02x}", folder).c_str(), kFlags);
    DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (stream == nullptr) {
      const int error = errno;
      if (fd >= 0) ::close(fd);
      return error;
    }
    while (const dirent* entry = ::readdir(stream)) {
      FileId id = 0;
      if (parse_name(entry->d_name, id)) files.push_back(id);
    }
    ::closedir(stream);
  }
  return 0;
}

int DataFiles::clear() {
  std::vector<FileId> files;
  int error = list(files);
  for (const FileId id : files) {
    const int failed = remove(id);
    if (error == 0) error = failed;
  }
  return error;
}

int DataFiles::open_file(FileId id, int flags, int& fd) {
  const std::string path = data_path(id);
  const auto slash = path.find('/');
  constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  const UniqueFd folder(::openat(root_.get(), path.substr(0, slash).c_str(), kFolder));
  if (!folder) return errno;
  fd = ::openat(folder.get(), path.c_str() + slash + 1, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
                0600);
  return fd < 0 ? errno : 0;
}

int DataFiles::get(FileId id, bool make, std::shared_ptr<DataFile>& file) {
  if (const auto found = open_.find(id); found != open_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    file = order_.front();
    return 0;
  }
  int fd = -1;
  if (const int error = open_file(id, make ? O_CREAT : 0, fd)) return error;
  auto opened = std::make_shared<DataFile>();
  opened->id = id;
  opened->fd = UniqueFd(fd);

  struct stat status {};

  if (::fstat(fd, &status) != 0) return errno;
  opened->space = space_of(status);
  order_.push_front(opened);
  open_[id] = order_.begin();
  close_oldest();
  file = std::move(opened);
  return 0;
}

// A file in use is not closed, because its space would be counted twice when it is opened again.
void DataFiles::close_oldest() {
  for (auto at = order_.end(); order_.size() > kMostOpen && at != order_.begin();) {
    --at;
    if (at->use_count() > 1) continue;
    open_.erase((*at)->id);
    at = order_.erase(at);
  }
}

int DataFiles::status(FileId id, DataStatus& status) {
  struct stat found {};

  const auto open = open_.find(id);
  const int result = open != open_.end() ? ::fstat((*open->second)->fd.get(), &found)
                                         : ::fstatat(root_.get(), data_path(id).c_str(), &found,
                                                     AT_SYMLINK_NOFOLLOW);
  if (result != 0) return errno;
  status = {static_cast<std::uint64_t>(found.st_size), static_cast<std::uint64_t>(found.st_blocks),
            to_ns(found.st_mtim), to_ns(found.st_ctim)};
  return 0;
}

// Clients of this node may have the file open too, so its space is free only when it is empty.
int DataFiles::remove(FileId id) {
  std::shared_ptr<DataFile> file;
  if (const int error = get(id, false, file)) return error;
  file->is_removed = true;
  const auto found = open_.find(id);
  order_.erase(found->second);
  open_.erase(found);
  if (::unlinkat(root_.get(), data_path(id).c_str(), 0) != 0 && errno != ENOENT) return errno;
  std::ignore = ::ftruncate(file->fd.get(), 0);
  quota_.settle(0, std::exchange(file->space, 0), 0);
  return 0;
}

int DataFiles::truncate(FileId id, std::uint64_t size) {
  std::shared_ptr<DataFile> file;
  if (const int error = get(id, size > 0, file)) return error == ENOENT ? 0 : error;
  if (::ftruncate(file->fd.get(), static_cast<off_t>(size)) != 0) return errno;
  settle(*file, 0);
  return 0;
}

int DataFiles::set_time(FileId id, std::int64_t modified_ns) {
  const timespec modified = to_timespec(modified_ns);
  const std::array<timespec, 2> times{modified, modified};
  const int result =
      ::utimensat(root_.get(), data_path(id).c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  return result != 0 && errno != ENOENT ? errno : 0;
}

int DataFiles::allocate(FileId id, int mode, const Extent& extent) {
  const bool takes_space = (mode & FALLOC_FL_PUNCH_HOLE) == 0;
  std::shared_ptr<DataFile> file;
  const int error = get(id, takes_space, file);
  if (error != 0) return error == ENOENT ? 0 : error;
  std::uint64_t reserved = 0;
  if (takes_space) {
    if (const int full = reserve(*file, {extent}, reserved)) return full;
  }
  const int result = ::fallocate(file->fd.get(), mode, static_cast<off_t>(extent.offset),
                                 static_cast<off_t>(extent.length));
  const int failed = result != 0 ? errno : 0;
  settle(*file, reserved);
  return failed;
}

int DataFiles::seek(FileId id, bool is_hole, std::uint64_t offset, std::uint64_t& found) {
  std::shared_ptr<DataFile> file;
  found = is_hole ? offset : UINT64_MAX;
  const int error = get(id, false, file);
  if (error != 0) return error == ENOENT ? 0 : error;
  const off_t place =
      ::lseek(file->fd.get(), static_cast<off_t>(offset), is_hole ? SEEK_HOLE : SEEK_DATA);
  if (place < 0) return errno == ENXIO ? 0 : errno;
  found = static_cast<std::uint64_t>(place);
  return 0;
}

int DataFiles::reserve(DataFile& file, const std::vector<Extent>& extents,
                       std::uint64_t& reserved) {
  reserved = 0;
  for (const Extent& extent : extents) reserved += most_space(extent.length);
  if (quota_.reserve(reserved)) return 0;
  reserved = 0;
  return is_allocated(file.fd.get(), extents) ? 0 : ENOSPC;
}

void DataFiles::settle(DataFile& file, std::uint64_t reserved) {
  struct stat status {};

  if (file.is_removed || ::fstat(file.fd.get(), &status) != 0) {
    quota_.settle(reserved, 0, 0);
    return;
  }
  quota_.settle(reserved, file.space, space_of(status));
  file.space = space_of(status);
}

}  // namespace score::pario
