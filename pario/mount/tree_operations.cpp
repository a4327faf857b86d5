// Links, extended attributes, groups of directories, holes and unnamed files.
#include "pario/client/socket_calls.hpp"
#include "pario/mount/replies.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kMostDirectories = 10'000;
constexpr auto kKeepMs = static_cast<std::int64_t>(kCacheSeconds * 1'000);

}  // namespace

DirectoryGroups& directory_groups() {
  static DirectoryGroups groups;
  return groups;
}

void DirectoryGroups::note(const FileStatus& status) {
  if (!S_ISDIR(status.mode)) return;
  const std::scoped_lock lock(mutex_);
  if (known_.size() >= kMostDirectories) known_.clear();
  known_[status.id] = {status.mode, status.group, monotonic_ms() + kKeepMs};
}

int DirectoryGroups::find(Volume& volume, FileId directory, Known& known) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(directory);
    if (found != known_.end()) known = found->second;
  }
  if (known.until_ms > monotonic_ms()) return 0;
  FileStatus status;
  if (const int error = volume.status(directory, status)) return error;
  known = {status.mode, status.group, 0};
  note(status);
  return 0;
}

int DirectoryGroups::inherit(Volume& volume, FileId parent, FileStatus& made) {
  Known known;
  if (const int error = find(volume, parent, known)) return error;
  if ((known.mode & S_ISGID) == 0) return 0;
  if (made.group != known.group) {
    if (const int error = volume.set_group(made.id, known.group)) return error;
    made.group = known.group;
  }
  if (!S_ISDIR(made.mode) || (made.mode & S_ISGID) != 0) return 0;
  made.mode |= S_ISGID;
  return volume.set_mode(made.id, made.mode & 07777U);
}

void make_temporary(fuse_req_t request, fuse_ino_t parent, mode_t mode, fuse_file_info* info) {
  Volume& volume = volume_of(request);
  FileStatus status;
  int error = volume.make_unnamed(id_of(parent), S_IFREG | (mode & 07777), status);
  if (error == 0) error = directory_groups().inherit(volume, id_of(parent), status);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  fill_info(request, status, info);
  keep_unnamed(status.id);
  const fuse_entry_param entry = entry_of(status);
  fuse_reply_create(request, &entry, info);
}

namespace {

void make_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
  FileStatus status;
  const int error = volume_of(request).link(id_of(number), {id_of(parent), name}, status);
  reply_entry(request, error, status);
}

void make_symbolic_link(fuse_req_t request, const char* target, fuse_ino_t parent,
                        const char* name) {
  Volume& volume = volume_of(request);
  FileStatus status;
  int error = volume.make_symbolic_link({id_of(parent), name}, target, status);
  if (error == 0) error = directory_groups().inherit(volume, id_of(parent), status);
  reply_entry(request, error, status);
}

void read_symbolic_link(fuse_req_t request, fuse_ino_t number) {
  std::string target;
  if (const int error = volume_of(request).read_symbolic_link(id_of(number), target)) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_readlink(request, target.c_str());
  }
}

bool is_user_value(std::string_view name) {
  return name.starts_with("user.") && name.size() > 5;
}

// `size` 0 asks for the size of the value.
void reply_value(fuse_req_t request, const std::string& value, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, value.size());
  } else if (value.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, value.data(), value.size());
  }
}

void get_value(fuse_req_t request, fuse_ino_t number, const char* name, std::size_t size) {
  std::string value;
  const int error =
      is_user_value(name) ? volume_of(request).read_value(id_of(number), name, value) : EOPNOTSUPP;
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    reply_value(request, value, size);
  }
}

void set_value(fuse_req_t request, fuse_ino_t number, const char* name, const char* bytes,
               std::size_t size, int flags) {
  ValueChange change = ValueChange::Set;
  if (flags == XATTR_CREATE) change = ValueChange::Create;
  if (flags == XATTR_REPLACE) change = ValueChange::Replace;
  const int error = is_user_value(name) ? volume_of(request).change_value(id_of(number), name,
                                                                          change, {bytes, size})
                                        : EOPNOTSUPP;
  fuse_reply_err(request, error);
}

void remove_value(fuse_req_t request, fuse_ino_t number, const char* name) {
  const int error = is_user_value(name) ? volume_of(request).change_value(id_of(number), name,
                                                                          ValueChange::Remove, {})
                                        : EOPNOTSUPP;
  fuse_reply_err(request, error);
}

void list_values(fuse_req_t request, fuse_ino_t number, std::size_t size) {
  std::string names;
  if (const int error = volume_of(request).list_values(id_of(number), names)) {
    fuse_reply_err(request, error);
  } else {
    reply_value(request, names, size);
  }
}

void allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length,
              fuse_file_info* info) {
  constexpr int kKeep = FALLOC_FL_KEEP_SIZE;
  constexpr int kKnown = kKeep | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  const Extent extent{static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)};
  const int error = (mode & ~kKnown) != 0
                        ? EOPNOTSUPP
                        : volume_of(request).allocate(handle_of(info), mode, extent);
  fuse_reply_err(request, error);
}

void seek(fuse_req_t request, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  std::uint64_t found = 0;
  const bool is_hole = whence == SEEK_HOLE;
  const int error = whence != SEEK_DATA && !is_hole
                        ? EINVAL
                        : volume_of(request).seek(handle_of(info), is_hole,
                                                  static_cast<std::uint64_t>(offset), found);
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_lseek(request, static_cast<off_t>(found));
  }
}

void copy_range(fuse_req_t request, fuse_ino_t, off_t from, fuse_file_info* source, fuse_ino_t,
                off_t to, fuse_file_info* target, std::size_t length, int) {
  const Extent extent{static_cast<std::uint64_t>(to), length};
  const ssize_t result = volume_of(request).copy(
      handle_of(source), static_cast<std::uint64_t>(from), handle_of(target), extent);
  if (result < 0) {
    fuse_reply_err(request, static_cast<int>(-result));
  } else {
    fuse_reply_write(request, static_cast<std::size_t>(result));
  }
}

}  // namespace

void add_tree_operations(fuse_lowlevel_ops& operations) {
  operations.link = make_link;
  operations.symlink = make_symbolic_link;
  operations.readlink = read_symbolic_link;
  operations.getxattr = get_value;
  operations.setxattr = set_value;
  operations.removexattr = remove_value;
  operations.listxattr = list_values;
  operations.fallocate = allocate;
  operations.lseek = seek;
  operations.copy_file_range = copy_range;
}

}  // namespace score::pario
