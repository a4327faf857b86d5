// Implements pario.h with Volume.
#include "pario/client/pario.h"

#include "pario/client/group.hpp"
#include "pario/client/handles.hpp"
#include "pario/client/path.hpp"
#include "pario/core/times.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace pario = score::pario;

struct pario_group {
  pario::Volume* volume = nullptr;
  pario::Group group;
};

struct pario_transfer {
  std::unique_ptr<pario::Volume::Transfer> transfer;
};

namespace {

constexpr std::size_t kMostViewExtents = 65'536;  // of one round

// Returns 0 or a negative errno value.
int check_read(const pario_file& file) {
  if (file.is_directory) return -EISDIR;
  return (file.flags & O_ACCMODE) != O_WRONLY ? 0 : -EBADF;
}

int check_write(const pario_file& file) {
  return (file.flags & O_ACCMODE) != O_RDONLY ? 0 : -EBADF;
}

void fill(const pario::FileStatus& from, struct stat& to) {
  to = {};
  to.st_ino = from.id;
  to.st_mode = from.mode;
  to.st_nlink = from.links;
  to.st_uid = ::geteuid();
  to.st_gid = from.group == pario::kNoGroup ? ::getegid() : from.group;
  to.st_size = static_cast<off_t>(from.size);
  to.st_blocks = static_cast<blkcnt_t>(from.blocks);
  to.st_blksize = 1 << 20;
  to.st_mtim = pario::to_timespec(from.modified_ns);
  to.st_atim = from.accessed_ns != 0 ? pario::to_timespec(from.accessed_ns) : to.st_mtim;
  to.st_ctim = pario::to_timespec(from.changed_ns);
}

std::vector<pario::Extent> copy_of(const pario_extent* extents, std::size_t count) {
  std::vector<pario::Extent> copied;
  copied.reserve(count);
  for (std::size_t i = 0; i < count; ++i) copied.push_back({extents[i].offset, extents[i].length});
  return copied;
}

char* writable(const void* buffer) {
  return const_cast<char*>(static_cast<const char*>(buffer));
}

ssize_t transfer_one(pario_file* file, void* buffer, const pario::Extent& extent, bool is_read) {
  if (extent.length == 0) return 0;
  if (extent.offset > pario::kMaxOffset) return -EINVAL;
  pario::Extent one = extent;
  if (is_read) one.length = std::min(one.length, pario::kMaxOffset - one.offset);
  if (one.length == 0) return 0;
  const pario::Span span{std::span(&one, 1), static_cast<char*>(buffer)};
  return is_read ? file->volume->read(file->file, span) : file->volume->write(file->file, span);
}

// Works in rounds, so that the list of extents stays short.
ssize_t transfer_view(pario_file* file, const pario::View& view, char* buffer,
                      const pario::Extent& shown, bool is_read) {
  const std::uint64_t round =
      view.block == 0 ? shown.length : std::min(view.block, kMostViewExtents) * 1'024;
  for (std::uint64_t done = 0; done < shown.length;) {
    const pario::Extent part{shown.offset + done, std::min(round, shown.length - done)};
    std::vector<pario::Extent> extents;
    if (!map(view, part, kMostViewExtents, extents)) return -EINVAL;
    const pario::Span span{extents, buffer + done};
    const ssize_t result =
        is_read ? file->volume->read(file->file, span) : file->volume->write(file->file, span);
    if (result < 0) return result;
    done += static_cast<std::uint64_t>(result);
    if (static_cast<std::uint64_t>(result) < part.length) return static_cast<ssize_t>(done);
  }
  return static_cast<ssize_t>(shown.length);
}

}  // namespace

int pario_open_volume(const char* description, pario_volume** volume, char* message,
                      std::size_t message_bytes) {
  const char* path = description != nullptr ? description : std::getenv("PARIO_VOLUME");
  auto made = std::make_unique<pario_volume>();
  std::string text = "PARIO_VOLUME is not set: name the description of a volume";
  const int error = path == nullptr ? EINVAL : pario::Volume::open(path, made->volume, text);
  if (error == 0) {
    *volume = made.release();
  } else if (message != nullptr && message_bytes > 0) {
    const std::size_t length = std::min(text.size(), message_bytes - 1);
    std::memcpy(message, text.data(), length);
    message[length] = '\0';
  }
  return -error;
}

void pario_close_volume(pario_volume* volume) {
  delete volume;
}

int pario_open(pario_volume* volume, const char* path, int flags, mode_t mode, pario_file** file) {
  pario::Volume& own = *volume->volume;
  pario::FileStatus status;
  int error = 0;
  if ((flags & O_CREAT) != 0) {
    pario::Volume::Name name;
    error = find_parent(own, path, name);
    const bool exclusive = (flags & O_EXCL) != 0;
    if (error == 0) {
      error = own.create(name.parent, name.name, S_IFREG | (mode & 07777), exclusive, status);
    }
  } else {
    error = find_path(own, path, status);
  }
  if (error != 0) return -error;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (S_ISDIR(status.mode) && (writes || (flags & O_CREAT) != 0)) return -EISDIR;
  if (S_ISLNK(status.mode)) return -ELOOP;  // paths of the library follow no links
  if (!S_ISREG(status.mode) && !S_ISDIR(status.mode)) return -ENXIO;
  if ((flags & O_TRUNC) != 0 && writes && status.size > 0) error = own.truncate(status.id, 0);
  if (error != 0) return -error;
  auto opened = std::make_unique<pario_file>();
  opened->volume = &own;
  opened->flags = flags;
  opened->is_directory = S_ISDIR(status.mode);
  opened->file.id = status.id;
  opened->file.is_wide = status.is_wide;
  *file = opened.release();
  return 0;
}

int pario_close(pario_file* file) {
  delete file;
  return 0;
}

ssize_t pario_pread(pario_file* file, void* buffer, std::size_t length, std::uint64_t offset) {
  if (const int error = check_read(*file)) return error;
  return transfer_one(file, buffer, {offset, length}, true);
}

ssize_t pario_pwrite(pario_file* file, const void* buffer, std::size_t length,
                     std::uint64_t offset) {
  if (const int error = check_write(*file)) return error;
  if ((file->flags & O_APPEND) != 0) {
    return file->volume->append(file->file, static_cast<const char*>(buffer), length);
  }
  return transfer_one(file, writable(buffer), {offset, length}, false);
}

ssize_t pario_read_extents(pario_file* file, const pario_extent* extents, std::size_t count,
                           void* buffer) {
  if (const int error = check_read(*file)) return error;
  return file->volume->read(file->file, {copy_of(extents, count), writable(buffer)});
}

ssize_t pario_write_extents(pario_file* file, const pario_extent* extents, std::size_t count,
                            const void* buffer) {
  if (const int error = check_write(*file)) return error;
  return file->volume->write(file->file, {copy_of(extents, count), writable(buffer)});
}

int pario_start_read(pario_file* file, const pario_extent* extents, std::size_t count, void* buffer,
                     pario_transfer** transfer) {
  if (const int error = check_read(*file)) return error;
  const auto copied = copy_of(extents, count);
  *transfer = new pario_transfer{file->volume->start_read(file->file, {copied, writable(buffer)})};
  return 0;
}

int pario_start_write(pario_file* file, const pario_extent* extents, std::size_t count,
                      const void* buffer, pario_transfer** transfer) {
  if (const int error = check_write(*file)) return error;
  const auto copied = copy_of(extents, count);
  *transfer = new pario_transfer{file->volume->start_write(file->file, {copied, writable(buffer)})};
  return 0;
}

ssize_t pario_wait(pario_transfer* transfer) {
  const std::unique_ptr<pario_transfer> owned(transfer);
  return owned->transfer->wait();
}

pario_view pario_linear_view() {
  return {0, 0, 0};
}

pario_view pario_segmented_view(const pario_volume* volume, std::uint32_t segment,
                                std::uint32_t segments) {
  const pario::View view = pario::segmented_view(volume->volume->stripe(), segment, segments);
  return {view.start, view.block, view.stride};
}

ssize_t pario_read_view(pario_file* file, const pario_view* view, void* buffer, std::size_t length,
                        std::uint64_t offset) {
  if (const int error = check_read(*file)) return error;
  return transfer_view(file, {view->start, view->block, view->stride}, writable(buffer),
                       {offset, length}, true);
}

ssize_t pario_write_view(pario_file* file, const pario_view* view, const void* buffer,
                         std::size_t length, std::uint64_t offset) {
  if (const int error = check_write(*file)) return error;
  return transfer_view(file, {view->start, view->block, view->stride}, writable(buffer),
                       {offset, length}, false);
}

int pario_join_group(pario_volume* volume, const char* name, std::uint32_t rank, std::uint32_t size,
                     pario_group** group) {
  constexpr std::uint32_t kMostRanks = 1U << 20;
  if (*name == '\0' || size == 0 || size > kMostRanks || rank >= size) return -EINVAL;
  pario::Volume& own = *volume->volume;
  *group = new pario_group{&own, pario::Group(own, name, rank, size)};
  return 0;
}

void pario_leave_group(pario_group* group) {
  delete group;
}

ssize_t pario_read_all(pario_group* group, pario_file* file, const pario_extent* extents,
                       std::size_t count, void* buffer) {
  ssize_t result = group->volume == file->volume ? check_read(*file) : -EINVAL;
  if (result == 0) {
    result = file->volume->read(file->file, {copy_of(extents, count), writable(buffer)});
  }
  return group->group.meet(file->file, result);
}

ssize_t pario_write_all(pario_group* group, pario_file* file, const pario_extent* extents,
                        std::size_t count, const void* buffer) {
  ssize_t result = group->volume == file->volume ? check_write(*file) : -EINVAL;
  if (result == 0) {
    result = file->volume->write(file->file, {copy_of(extents, count), writable(buffer)});
  }
  return group->group.meet(file->file, result);
}

ssize_t pario_read_view_all(pario_group* group, pario_file* file, const pario_view* view,
                            void* buffer, std::size_t length, std::uint64_t offset) {
  const bool is_own = group->volume == file->volume;
  const ssize_t result = is_own ? pario_read_view(file, view, buffer, length, offset) : -EINVAL;
  return group->group.meet(file->file, result);
}

ssize_t pario_write_view_all(pario_group* group, pario_file* file, const pario_view* view,
                             const void* buffer, std::size_t length, std::uint64_t offset) {
  const bool is_own = group->volume == file->volume;
  const ssize_t result = is_own ? pario_write_view(file, view, buffer, length, offset) : -EINVAL;
  return group->group.meet(file->file, result);
}

int pario_fstat(pario_file* file, struct stat* status) {
  pario::FileStatus found;
  const int error = file->volume->status(file->file.id, found);
  if (error == 0) fill(found, *status);
  return -error;
}

int pario_ftruncate(pario_file* file, std::uint64_t length) {
  return check_write(*file) == 0 ? -file->volume->truncate(file->file.id, length) : -EINVAL;
}

int pario_fsync(pario_file* file) {
  return -file->volume->sync(file->file.id);
}

int pario_stat(pario_volume* volume, const char* path, struct stat* status) {
  pario::FileStatus found;
  const int error = find_path(*volume->volume, path, found);
  if (error == 0) fill(found, *status);
  return -error;
}

int pario_truncate(pario_volume* volume, const char* path, std::uint64_t length) {
  pario::FileStatus found;
  const int error = find_path(*volume->volume, path, found);
  return error != 0 ? -error : -volume->volume->truncate(found.id, length);
}

int pario_unlink(pario_volume* volume, const char* path) {
  pario::Volume::Name name;
  const int error = find_parent(*volume->volume, path, name);
  return error != 0 ? -error : -volume->volume->unlink(name.parent, name.name);
}

int pario_mkdir(pario_volume* volume, const char* path, mode_t mode) {
  pario::Volume::Name name;
  pario::FileStatus made;
  const int error = find_parent(*volume->volume, path, name);
  if (error != 0) return -error;
  const std::uint32_t type = S_IFDIR | (mode & 07777);
  return -volume->volume->create(name.parent, name.name, type, true, made);
}

int pario_rmdir(pario_volume* volume, const char* path) {
  pario::Volume::Name name;
  const int error = find_parent(*volume->volume, path, name);
  return error != 0 ? -error : -volume->volume->rmdir(name.parent, name.name);
}

int pario_rename(pario_volume* volume, const char* from, const char* to) {
  pario::Volume::Name old_name;
  pario::Volume::Name new_name;
  // A directory must not become a part of itself.
  const std::string inside = std::string(from) + "/";
  if (std::string_view(to).starts_with(inside)) return -EINVAL;
  int error = find_parent(*volume->volume, from, old_name);
  if (error == 0) error = find_parent(*volume->volume, to, new_name);
  return error != 0 ? -error : -volume->volume->rename(old_name, new_name, false);
}

int pario_read_directory(pario_volume* volume, const char* path, pario_entry_function* each,
                         void* context) {
  pario::FileStatus found;
  std::vector<pario::Entry> entries;
  int error = find_path(*volume->volume, path, found);
  if (error == 0 && !S_ISDIR(found.mode)) error = ENOTDIR;
  if (error == 0) error = volume->volume->read_directory(found.id, entries);
  for (const pario::Entry& entry : entries) {
    if (error != 0) break;

    struct stat status {};

    status.st_ino = entry.id;
    status.st_mode = entry.mode & S_IFMT;
    if (const int stop = each(context, entry.name.c_str(), &status)) return stop;
  }
  return -error;
}

int pario_get_space(pario_volume* volume, pario_space* space) {
  std::vector<pario::Statistics> all;
  if (const int error = volume->volume->statistics(all)) return -error;
  *space = {};
  for (const pario::Statistics& one : all) {
    space->capacity += one.capacity;
    space->used += one.used;
    space->files += one.files;
  }
  return 0;
}

int pario_get_server_space(pario_volume* volume, std::uint32_t server, pario_space* space) {
  std::vector<pario::Statistics> all;
  std::vector<int> errors;
  if (server >= volume->volume->servers()) return -EINVAL;
  if (const int error = volume->volume->statistics(all, &errors)) return -error;
  if (errors[server] != 0) return -errors[server];
  *space = {all[server].capacity, all[server].used, all[server].files};
  return 0;
}

int pario_get_server_traffic(pario_volume* volume, std::uint32_t server, pario_traffic* traffic) {
  std::vector<pario::Statistics> all;
  std::vector<int> errors;
  if (server >= volume->volume->servers()) return -EINVAL;
  if (const int error = volume->volume->statistics(all, &errors)) return -error;
  if (errors[server] != 0) return -errors[server];
  const pario::Statistics& one = all[server];
  *traffic = {one.requests, one.bytes_read, one.bytes_written,
              one.pm_bytes, one.pm_clients, one.tcp_fallbacks};
  return 0;
}

int pario_destroy_volume(pario_volume* volume) {
  return -volume->volume->destroy();
}

std::uint32_t pario_servers(const pario_volume* volume) {
  return volume->volume->servers();
}

std::uint64_t pario_stripe(const pario_volume* volume) {
  return volume->volume->stripe();
}
