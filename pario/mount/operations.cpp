#include "pario/mount/operations.hpp"

#include "pario/core/quota.hpp"
#include "pario/core/times.hpp"
#include "pario/mount/open_files.hpp"
#include "pario/mount/replies.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::pario {

Volume& volume_of(fuse_req_t request) {
  return *options_of(request).volume;
}

FileId id_of(fuse_ino_t number) {
  return number == FUSE_ROOT_ID ? kRootId : number;
}

OpenFile& handle_of(const fuse_file_info* info) {
  return *reinterpret_cast<OpenFile*>(info->fh);
}

namespace {

struct stat stat_of(const FileStatus& from) {
  struct stat to {};

  to.st_ino = from.id == kRootId ? FUSE_ROOT_ID : from.id;
  to.st_mode = from.mode;
  to.st_nlink = S_ISDIR(from.mode) ? 1 : from.links;  // 1: not counted, as in btrfs
  to.st_uid = ::geteuid();
  to.st_gid = from.group == kNoGroup ? ::getegid() : from.group;
  to.st_size = static_cast<off_t>(from.size);
  to.st_blocks = static_cast<blkcnt_t>(from.blocks);
  to.st_blksize = 1 << 20;
  to.st_mtim = to_timespec(from.modified_ns);
  to.st_atim = from.accessed_ns != 0 ? to_timespec(from.accessed_ns) : to.st_mtim;
  to.st_ctim = to_timespec(from.changed_ns);
  return to;
}

// The attributes of a file that is open here are not cached, because a different node may write it.
double attribute_seconds(const FileStatus& status) {
  return open_files().is_open(status.id) ? 0 : kCacheSeconds;
}

}  // namespace

fuse_entry_param entry_of(const FileStatus& status) {
  directory_groups().note(status);
  fuse_entry_param entry{};
  entry.ino = status.id;
  entry.attr = stat_of(status);
  entry.attr_timeout = attribute_seconds(status);
  entry.entry_timeout = kCacheSeconds;
  return entry;
}

void reply_entry(fuse_req_t request, int error, const FileStatus& status) {
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const fuse_entry_param entry = entry_of(status);
  fuse_reply_entry(request, &entry);
}

static void reply_attributes(fuse_req_t request, const FileStatus& status) {
  directory_groups().note(status);
  const struct stat found = stat_of(status);
  fuse_reply_attr(request, &found, attribute_seconds(status));
}

void reply_status(fuse_req_t request, FileId id) {
  FileStatus status;
  if (const int error = volume_of(request).status(id, status)) {
    fuse_reply_err(request, error);
  } else {
    reply_attributes(request, status);
  }
}

namespace {

void start(void* options, fuse_conn_info* connection) {
  static_cast<MountOptions*>(options)->volume->set_keeper(&open_files());
  connection->max_write = kMaxDataBytes;
  connection->max_read = kMaxDataBytes;
  connection->max_readahead = kMaxDataBytes;
  connection->want |= connection->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                                             FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_CACHE_SYMLINKS);
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  const pid_t thread = fuse_req_ctx(request)->pid;
  const bool will_open = repeated_opens().contains(thread);
  FileStatus status;
  const int error = volume_of(request).lookup(id_of(parent), name, status, will_open);
  if (error != 0 && will_open) repeated_opens().take(thread);  // the system call ends
  reply_entry(request, error, status);
}

// A file without a name has attributes too: the kernel asks for its permissions before it opens the
// file, which is then refused if the name has a different one.
void get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  FileStatus status;
  const int error = volume_of(request).status(id_of(number), status, true);
  if (error == ESTALE) {
    repeated_opens().add(fuse_req_ctx(request)->pid, RepeatedOpens::kBriefMs);
  }
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    reply_attributes(request, status);
  }
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Volume::Times times_of(const struct stat& wanted, int what) {
  Volume::Times times;
  if ((what & FUSE_SET_ATTR_MTIME) != 0) {
    times.what |= kSetModified;
    times.modified_ns = (what & FUSE_SET_ATTR_MTIME_NOW) != 0 ? now_ns() : to_ns(wanted.st_mtim);
  }
  if ((what & FUSE_SET_ATTR_ATIME) != 0) {
    times.what |= kSetAccessed;
    times.accessed_ns = (what & FUSE_SET_ATTR_ATIME_NOW) != 0 ? now_ns() : to_ns(wanted.st_atim);
  }
  return times;
}

// A volume has one owner; the kernel has checked that the caller belongs to the group.
int set_owner(Volume& volume, FileId id, const struct stat& wanted, int what) {
  const bool is_other = (what & FUSE_SET_ATTR_UID) != 0 && wanted.st_uid != ::geteuid();
  if (is_other) return EPERM;
  return (what & FUSE_SET_ATTR_GID) != 0 ? volume.set_group(id, wanted.st_gid) : 0;
}

void set_attributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int what,
                    fuse_file_info*) {
  Volume& volume = volume_of(request);
  const FileId id = id_of(number);
  int error = set_owner(volume, id, *wanted, what);
  if (error == 0 && (what & FUSE_SET_ATTR_MODE) != 0) error = volume.set_mode(id, wanted->st_mode);
  if (error == 0 && (what & FUSE_SET_ATTR_SIZE) != 0) {
    error = volume.truncate(id, static_cast<std::uint64_t>(wanted->st_size));
  }
  const Volume::Times times = times_of(*wanted, what);
  if (error == 0 && times.what != 0) error = volume.set_times(id, times);
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    reply_status(request, id);
  }
}

}  // namespace

void keep_unnamed(FileId id) {
  open_files().keep(id);
}

void fill_info(fuse_req_t request, const FileStatus& status, fuse_file_info* info) {
  auto handle = std::make_unique<OpenFile>();
  handle->id = status.id;
  handle->is_wide = status.is_wide;
  open_files().opened(status.id);
  info->fh = reinterpret_cast<std::uint64_t>(handle.release());
  info->direct_io = options_of(request).has_page_cache ? 0 : 1;
}

namespace {

void release_file(Volume& volume, FileId id) {
  if (open_files().closed(id)) static_cast<void>(volume.remove_unnamed(id));
}

void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Volume& volume = volume_of(request);
  const pid_t thread = fuse_req_ctx(request)->pid;
  const FileId id = id_of(number);
  FileStatus status;
  const bool is_repeated = repeated_opens().take(thread);
  open_files().opened(id);
  int error = is_repeated ? volume.status(id, status, true) : volume.named_status(id, status);
  if (error == ESTALE && !is_repeated) repeated_opens().add(thread, RepeatedOpens::kCallMs);
  if (error == 0 && (info->flags & O_TRUNC) != 0) error = volume.truncate(id, 0);
  if (error != 0) {
    release_file(volume, id);
    fuse_reply_err(request, error);
    return;
  }
  fill_info(request, status, info);
  release_file(volume, id);
  // The kernel may have attributes from before.
  fuse_lowlevel_notify_inval_inode(options_of(request).session, number, -1, 0);
  fuse_reply_open(request, info);
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* info) {
  Volume& volume = volume_of(request);
  FileStatus status;
  if (*name == '/') return make_temporary(request, parent, mode, info);  // O_TMPFILE
  const bool exclusive = (info->flags & O_EXCL) != 0;
  int error = volume.create(id_of(parent), name, S_IFREG | (mode & 07777), exclusive, status);
  if (error == 0 && S_ISDIR(status.mode)) error = EISDIR;
  if (error == 0 && S_ISLNK(status.mode)) error = ELOOP;  // made on another node just now
  if (error == 0) error = directory_groups().inherit(volume, id_of(parent), status);
  if (error == 0 && (info->flags & O_TRUNC) != 0 && status.size > 0) {
    error = volume.truncate(status.id, 0);
    status.size = 0;
  }
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  fill_info(request, status, info);
  const fuse_entry_param entry = entry_of(status);
  fuse_reply_create(request, &entry, info);
}

void make_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t) {
  if (!S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode)) {
    fuse_reply_err(request, EPERM);
    return;
  }
  FileStatus status;
  int error = volume_of(request).create(id_of(parent), name, mode, true, status);
  if (error == 0) error = directory_groups().inherit(volume_of(request), id_of(parent), status);
  reply_entry(request, error, status);
}

void make_directory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  FileStatus status;
  const std::uint32_t type = S_IFDIR | (mode & 07777);
  int error = volume_of(request).create(id_of(parent), name, type, true, status);
  if (error == 0) error = directory_groups().inherit(volume_of(request), id_of(parent), status);
  reply_entry(request, error, status);
}

void unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
  fuse_reply_err(request, volume_of(request).unlink(id_of(parent), name));
}

void remove_directory(fuse_req_t request, fuse_ino_t parent, const char* name) {
  fuse_reply_err(request, volume_of(request).rmdir(id_of(parent), name));
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  Volume& volume = volume_of(request);
  const Volume::Name from{id_of(parent), name};
  const Volume::Name to{id_of(new_parent), new_name};
  int error = EINVAL;
  if (flags == RENAME_EXCHANGE) {
    error = volume.exchange(from, to);
  } else if ((flags & ~unsigned{RENAME_NOREPLACE}) == 0) {
    error = volume.rename(from, to, flags == RENAME_NOREPLACE);
  }
  fuse_reply_err(request, error);
}

void release(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  const FileId id = handle_of(info).id;
  release_locks(volume_of(request), id, info->fh);
  delete &handle_of(info);
  release_file(volume_of(request), id);
  fuse_reply_err(request, 0);
}

// Each thread of the session has one buffer, because fresh memory costs a page fault per 4 KB.
char* read_buffer() {
  thread_local std::unique_ptr<char[]> memory(new char[kMaxDataBytes]);
  return memory.get();
}

void read(fuse_req_t request, fuse_ino_t, std::size_t length, off_t offset, fuse_file_info* info) {
  length = std::min(length, kMaxDataBytes);
  const Extent extent{static_cast<std::uint64_t>(offset), length};
  char* memory = read_buffer();
  const ssize_t result = volume_of(request).read(handle_of(info), {std::span(&extent, 1), memory});
  if (result < 0) {
    fuse_reply_err(request, static_cast<int>(-result));
  } else {
    fuse_reply_buf(request, memory, static_cast<std::size_t>(result));
  }
}

struct Writing {
  const char* bytes = nullptr;
  Extent extent;
  bool appends = false;
};

// On a full volume a part of the bytes may fit.
ssize_t write_what_fits(Volume& volume, OpenFile& file, Writing what) {
  constexpr std::uint64_t kPage = 4'096;
  for (;;) {
    const auto length = static_cast<std::size_t>(what.extent.length);
    const Span span{std::span(&what.extent, 1), const_cast<char*>(what.bytes)};
    const ssize_t result =
        what.appends ? volume.append(file, what.bytes, length) : volume.write(file, span);
    if (result != -ENOSPC || what.extent.length <= kPage) return result;
    what.extent.length = what.extent.length / 2 / kPage * kPage;
    if (what.extent.length == 0) what.extent.length = kPage;
  }
}

void write(fuse_req_t request, fuse_ino_t, const char* bytes, std::size_t length, off_t offset,
           fuse_file_info* info) {
  // Pages of a mapping have their place, also if the file was opened for appending.
  const bool appends = (info->flags & O_APPEND) != 0 && info->writepage == 0;
  const Extent extent{static_cast<std::uint64_t>(offset), length};
  const ssize_t result =
      write_what_fits(volume_of(request), handle_of(info), {bytes, extent, appends});
  if (result < 0) {
    fuse_reply_err(request, static_cast<int>(-result));
  } else {
    fuse_reply_write(request, static_cast<std::size_t>(result));
  }
}

void sync(fuse_req_t request, fuse_ino_t number, int, fuse_file_info*) {
  fuse_reply_err(request, volume_of(request).sync(id_of(number)));
}

struct Listing {
  std::vector<Entry> entries;
  bool is_used = false;
};

void open_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  auto listing = std::make_unique<Listing>();
  int error = volume_of(request).read_directory(id_of(number), listing->entries);
  // No name can be made in a directory that is gone, so it is empty.
  FileStatus status;
  if (error == 0 && listing->entries.empty())
    error = volume_of(request).status(id_of(number), status);
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  info->fh = reinterpret_cast<std::uint64_t>(listing.release());
  fuse_reply_open(request, info);
}

void read_directory(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
                    fuse_file_info* info) {
  Listing& listing = *reinterpret_cast<Listing*>(info->fh);
  if (offset == 0 && std::exchange(listing.is_used, true)) {  // rewinddir(3)
    std::vector<Entry> entries;
    if (const int error = volume_of(request).read_directory(id_of(number), entries)) {
      fuse_reply_err(request, error);
      return;
    }
    listing.entries.swap(entries);
  }
  std::string bytes(size, '\0');
  std::size_t used = 0;

  struct stat status {};

  const auto add = [&](const char* name, off_t next) {
    const std::size_t need =
        fuse_add_direntry(request, bytes.data() + used, size - used, name, &status, next);
    if (need > size - used) return false;
    used += need;
    return true;
  };
  bool has_room = true;
  status.st_mode = S_IFDIR;
  status.st_ino = number;
  if (offset == 0) has_room = add(".", 1);
  if (has_room && offset <= 1) has_room = add("..", 2);
  std::size_t at = static_cast<std::size_t>(std::max<off_t>(offset, 2)) - 2;
  for (; has_room && at < listing.entries.size(); ++at) {
    status.st_ino = listing.entries[at].id;
    status.st_mode = listing.entries[at].mode;
    has_room = add(listing.entries[at].name.c_str(), static_cast<off_t>(at) + 3);
  }
  fuse_reply_buf(request, bytes.data(), used);
}

void release_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  delete reinterpret_cast<Listing*>(info->fh);
  fuse_reply_err(request, 0);
}

void file_system_status(fuse_req_t request, fuse_ino_t) {
  std::vector<Statistics> all;
  if (const int error = volume_of(request).statistics(all)) {
    fuse_reply_err(request, error);
    return;
  }
  constexpr std::uint64_t kBlock = 4'096;

  struct statvfs status {};

  status.f_bsize = kBlock;
  status.f_frsize = kBlock;
  status.f_namemax = kMaxNameBytes;
  for (const Statistics& one : all) {
    status.f_blocks += one.capacity / kBlock;
    status.f_bfree += one.used < one.capacity ? (one.capacity - one.used) / kBlock : 0;
    status.f_files += one.files;
  }
  status.f_bavail = status.f_bfree;
  const fsfilcnt_t most = status.f_bfree * kBlock / kBytesPerFile;
  status.f_ffree = most > status.f_files ? most - status.f_files : 0;
  status.f_favail = status.f_ffree;
  status.f_files += status.f_ffree;
  fuse_reply_statfs(request, &status);
}

}  // namespace

const fuse_lowlevel_ops& mount_operations() {
  static const fuse_lowlevel_ops operations = [] {
    fuse_lowlevel_ops ops{};
    ops.init = start;
    ops.lookup = lookup;
    ops.getattr = get_attributes;
    ops.setattr = set_attributes;
    ops.open = open_file;
    ops.create = create;
    ops.mknod = make_node;
    ops.mkdir = make_directory;
    ops.unlink = unlink;
    ops.rmdir = remove_directory;
    ops.rename = rename;
    ops.release = release;
    ops.read = read;
    ops.write = write;
    ops.fsync = sync;
    ops.fsyncdir = sync;
    ops.opendir = open_directory;
    ops.readdir = read_directory;
    ops.releasedir = release_directory;
    ops.statfs = file_system_status;
    add_tree_operations(ops);
    add_lock_operations(ops);
    return ops;
  }();
  return operations;
}

}  // namespace score::pario
