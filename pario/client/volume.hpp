// A striped volume, by numbers of files: what the C library and the mount are made of. Every
// function may be called by several threads. Functions that return int: 0 or an errno value; EIO if
// a server cannot be reached within about 10 s.
#pragma once

#include "pario/client/link.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

struct FileStatus {
  FileId id = 0;
  std::uint32_t mode = 0;
  bool is_wide = false;  // it has, or had, data beyond its first stripe
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  // of 512 bytes
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
};

// What a user of a file keeps of it.
struct OpenFile {
  FileId id = 0;
  std::atomic<bool> is_wide = false;
};

// Extents of a file and the memory for their bytes, one after the other.
struct Span {
  std::span<const Extent> extents;
  char* memory = nullptr;
};

// Keeps account of open files, which may lose their names.
class Keeper {
 public:
  virtual ~Keeper() = default;
  virtual bool has_open_files() = 0;
  virtual bool is_open(FileId id) = 0;
  // True: the file is open; it is kept without a name until Volume::remove_unnamed().
  virtual bool keep(FileId id) = 0;
};

class Volume {
 public:
  // Reads the description `path` and connects to all servers. `message`: what failed.
  static int open(const std::string& path, std::unique_ptr<Volume>& volume, std::string& message);

  // Names. All but `lookup` change the volume.
  int lookup(FileId parent, std::string_view name, FileStatus& status);
  // Its number and type alone, which one server knows.
  int find(FileId parent, std::string_view name, Entry& entry);
  // A file, or with S_IFDIR in `mode` a directory. EEXIST only if `exclusive`, else the one that is
  // there.
  int create(FileId parent, std::string_view name, std::uint32_t mode, bool exclusive,
             FileStatus& status);
  int unlink(FileId parent, std::string_view name);
  int rmdir(FileId parent, std::string_view name);

  // `keeper` lives as long as the volume; null: a file goes with its name, open or not.
  void set_keeper(Keeper* keeper) { keeper_ = keeper; }

  // A file that was kept.
  int remove_unnamed(FileId id) { return remove_file(id); }

  struct Name {
    FileId parent = 0;
    std::string_view name;
  };

  // Replaces `to` as rename(2) does, or EEXIST if `exclusive`.
  int rename(const Name& from, const Name& to, bool exclusive);
  // All entries, in no order.
  int read_directory(FileId id, std::vector<Entry>& entries);

  // Attributes.
  int status(FileId id, FileStatus& status);
  int set_mode(FileId id, std::uint32_t mode);
  int set_time(FileId id, std::int64_t modified_ns);
  int truncate(FileId id, std::uint64_t size);
  // Data and attributes are on the disks of their servers.
  int sync(FileId id);
  // All servers remove what they have, and end.
  int destroy();
  // Waits at the home of the file until all ranks of a group have come; see Group.
  int gather(FileId id, std::uint64_t group, const Gathered& part);
  // Of each server.
  int statistics(std::vector<Statistics>& statistics);

  // Data. The number of bytes, or a negative errno value. A read ends at the end of the file.
  ssize_t read(OpenFile& file, const Span& span);
  ssize_t write(OpenFile& file, const Span& span);
  // Writes at the end of the file; different writers never overlap.
  ssize_t append(OpenFile& file, const char* bytes, std::size_t length);

  // A read or write that runs while the caller does something else. One thread uses it.
  class Transfer;
  std::unique_ptr<Transfer> start_read(OpenFile& file, const Span& span);
  std::unique_ptr<Transfer> start_write(OpenFile& file, const Span& span);

  // Reads and writes of several files in one step; see transaction.hpp.
  class Transaction;

  std::uint64_t stripe() const { return description_.stripe; }

  std::uint32_t servers() const { return static_cast<std::uint32_t>(links_.size()); }

 private:
  Volume() = default;

  // Sends, waits, and gives the error.
  int call(std::uint32_t server, Call& call);
  int call_home(Op op, FileId id, Call& call);
  // The same request to all servers but `except`; the first error. `calls` by server.
  int call_all(const Request& request, std::vector<Call>& calls,
               std::uint32_t except = kMaxServers);
  int named(Op op, const Name& name, Call& call);
  int unlink_kept(const Name& name, bool& is_kept);
  int take_status(const Call& call, FileStatus& status);
  int add_wide(FileStatus& status);
  int make_wide(OpenFile& file, std::span<const Piece> pieces);
  // Removes a file that no entry refers to any more.
  int remove_file(FileId id);
  int remove_rest(FileId id, const Attributes& attributes);
  int seal(FileId id);
  int move(const Name& from, const Name& to, Call& one);
  int rename_across(const Name& from, const Name& to, bool exclusive, FileId& replaced);
  Striping striping(FileId id) const;
  std::uint32_t server_of(const Name& name) const;

  VolumeDescription description_;
  std::vector<std::unique_ptr<Link>> links_;
  Keeper* keeper_ = nullptr;
};

class Volume::Transfer {
 public:
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Bytes or a negative errno value; the same when called again.
  ssize_t wait();

 private:
  friend class Volume;

  Transfer(Volume& volume, OpenFile& file, Op op) : volume_(volume), file_(file), op_(op) {}

  void start(const Span& span);
  void add(const Piece& piece, char* memory);
  void issue();
  int finish_all();
  ssize_t end_read();
  // Of what was read, the bytes before `size`; `needs_more`: some were not there when it was read.
  std::uint64_t count_before(std::uint64_t size, bool& needs_more) const;

  Volume& volume_;
  OpenFile& file_;
  Op op_;
  int error_ = 0;
  bool is_done_ = false;
  ssize_t result_ = 0;
  std::uint64_t total_ = 0;
  std::vector<Extent> extents_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::uint32_t> servers_;  // of calls_
};

}  // namespace score::pario
