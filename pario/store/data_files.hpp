// Manages the data of one server: one file per file of the volume that has data here, below `data/`
// of the server's directory, named by the number. No file outside of it is opened, because no
// symbolic link is followed.
#pragma once

#include "base/os/fd.hpp"
#include "pario/core/layout.hpp"
#include "pario/core/quota.hpp"

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace score::pario {

// An open data file lives as long as a request uses it, even if it was removed in the meantime.
struct DataFile {
  FileId id = 0;
  UniqueFd fd;
  std::uint64_t space = 0;  // bytes on the disk, as counted in the quota
  bool is_removed = false;
};

struct DataStatus {
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
};

// This class is not thread-safe. Its int results are 0 or an errno value.
class DataFiles {
 public:
  explicit DataFiles(std::uint64_t capacity) : quota_(capacity) {}

  // Creates `data/` in the directory `root` and counts the used space. Files for which
  // `is_left_over` is true are removed.
  int open(int root, const std::function<bool(FileId)>& is_left_over);

  // Opens a file. ENOENT: it has no data here and `make` is false.
  int get(FileId id, bool make, std::shared_ptr<DataFile>& file);
  // Returns ENOENT if the file has no data here.
  int status(FileId id, DataStatus& status);
  int remove(FileId id);
  int truncate(FileId id, std::uint64_t size);
  int set_time(FileId id, std::int64_t modified_ns);
  // Works as fallocate(2) with `mode`; the space counts at once.
  int allocate(FileId id, int mode, const Extent& extent);
  // Finds data or a hole from `offset` on. `found` is UINT64_MAX if there is no data.
  int seek(FileId id, bool is_hole, std::uint64_t offset, std::uint64_t& found);

  // Reserves space for a write, or returns ENOSPC. Existing data may always be overwritten.
  int reserve(DataFile& file, const std::vector<Extent>& extents, std::uint64_t& reserved);

  // Does the same for a write by a different process; settle() ends it.
  bool set_aside(std::uint64_t bytes) { return quota_.reserve(bytes); }

  // Call this after the write. It counts the space that the file uses now.
  void settle(DataFile& file, std::uint64_t reserved);

  // Call this if there was no write.
  void release(std::uint64_t reserved) { quota_.settle(reserved, 0, 0); }

  // Returns all files that have data here.
  int list(std::vector<FileId>& files);
  // Removes all files.
  int clear();

  void set_capacity(std::uint64_t capacity) { quota_.set_capacity(capacity); }

  // Returns the directory of data.
  int directory() const { return root_.get(); }

  const Quota& quota() const { return quota_; }

 private:
  using Order = std::list<std::shared_ptr<DataFile>>;

  void close_oldest();
  int open_file(FileId id, int flags, int& fd);
  int scan(int folder, const std::function<bool(FileId)>& is_left_over);

  UniqueFd root_;
  Quota quota_;
  Order order_;  // the most recently used first
  std::unordered_map<FileId, Order::iterator> open_;
};

}  // namespace score::pario
