// Declares the functions that the operations of the mount share.
#pragma once

#define FUSE_USE_VERSION 312
#include "pario/client/volume.hpp"

#include <fuse_lowlevel.h>
#include <mutex>
#include <unordered_map>

namespace score::pario {

inline constexpr double kCacheSeconds = 1.0;

struct MountOptions {
  std::unique_ptr<Volume> volume;
  fuse_session* session = nullptr;
  bool has_page_cache = false;  // files are read and written through the kernel's cache
};

inline MountOptions& options_of(fuse_req_t request) {
  return *static_cast<MountOptions*>(fuse_req_userdata(request));
}

Volume& volume_of(fuse_req_t request);
FileId id_of(fuse_ino_t number);
OpenFile& handle_of(const fuse_file_info* info);
fuse_entry_param entry_of(const FileStatus& status);
void reply_entry(fuse_req_t request, int error, const FileStatus& status);
void reply_status(fuse_req_t request, FileId id);
// Registers the file as open and makes its handle.
void fill_info(fuse_req_t request, const FileStatus& status, fuse_file_info* info);
// Removes the file, which has no name and is open, at its last close.
void keep_unnamed(FileId id);

void make_temporary(fuse_req_t request, fuse_ino_t parent, mode_t mode, fuse_file_info* info);
void add_tree_operations(fuse_lowlevel_ops& operations);
void add_lock_operations(fuse_lowlevel_ops& operations);
// Releases the locks that end when the handle is closed.
void release_locks(Volume& volume, FileId file, std::uint64_t handle);
// Ends the threads of locks that wait. Call this after the session's loop.
void end_waiting_locks();

// Remembers the groups of directories for as long as the kernel keeps their attributes, because a
// new file in a setgid directory gets its group. Every function may be called by several threads.
class DirectoryGroups {
 public:
  // Does nothing for other types.
  void note(const FileStatus& status);
  // A file in a setgid directory gets the group of the directory.
  int inherit(Volume& volume, FileId parent, FileStatus& made);

 private:
  struct Known {
    std::uint32_t mode = 0;
    std::uint32_t group = kNoGroup;
    std::int64_t until_ms = 0;
  };

  int find(Volume& volume, FileId directory, Known& known);

  std::mutex mutex_;
  std::unordered_map<FileId, Known> known_;
};

DirectoryGroups& directory_groups();

}  // namespace score::pario
