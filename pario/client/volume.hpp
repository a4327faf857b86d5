// Reads and writes a striped volume, by the numbers of its files. The C library and the mount are
// built on this. Every function may be called by several threads. Functions that return int return
// 0 or an errno value; EIO if the server of the file or name cannot be reached in the time that the
// volume's description allows, and at once while it is known to be dead.
#pragma once

#include "pario/client/link.hpp"
#include "pario/core/waits/file_locks.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
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
  std::int64_t accessed_ns = 0;
  std::uint32_t group = kNoGroup;
  std::uint32_t links = 1;  // names
};

// A user of a file keeps this information.
struct OpenFile {
  FileId id = 0;
  std::atomic<bool> is_wide = false;
};

// Describes extents of a file and the memory for their bytes, one after the other.
struct Span {
  std::span<const Extent> extents;
  char* memory = nullptr;
};

// Tracks open files, which may lose their names.
class OpenFileTracker {
 public:
  virtual ~OpenFileTracker() = default;
  virtual bool has_open_files() = 0;
  virtual bool is_open(FileId id) = 0;
  // Returns true if the file is open; it is then kept without a name until
  // Volume::remove_unnamed().
  virtual bool keep(FileId id) = 0;
};

inline FileStatus to_status(const Attributes& from) {
  const std::uint64_t size = (from.mode & S_IFMT) == S_IFDIR ? 0 : from.size;
  return {from.id,          from.mode,       from.wide != 0,   size,       from.blocks,
          from.modified_ns, from.changed_ns, from.accessed_ns, from.group, from.links};
}

class Volume {
 public:
  // Reads the description `path` and connects to all servers. Without replicas, some may be out of
  // reach: what lies on them fails. `message` receives the error text.
  static int open(const std::string& path, std::unique_ptr<Volume>& volume, std::string& message);

  // These functions handle names. All except `lookup` and `find` change the volume.
  // ESTALE: the directory is gone. `will_open`: the file is kept for some seconds even if its name
  // is removed, so that the caller can open it.
  int lookup(FileId parent, std::string_view name, FileStatus& status, bool will_open = false);
  // Finds only the file's number and type, which one server knows.
  int find(FileId parent, std::string_view name, Entry& entry);
  // Creates a file, or with S_IFDIR in `mode` a directory. If the name exists, returns EEXIST if
  // `exclusive`, and otherwise the existing file.
  int create(FileId parent, std::string_view name, std::uint32_t mode, bool exclusive,
             FileStatus& status);
  // Creates a directory with the layout `local`; see kLocalBit.
  int make_local_directory(FileId parent, std::string_view name, std::uint32_t mode,
                           FileStatus& status);
  int unlink(FileId parent, std::string_view name);
  int rmdir(FileId parent, std::string_view name);

  // `keeper` must live as long as the volume. If it is null, a file is removed with its name, even
  // if it is open.
  void set_keeper(OpenFileTracker* keeper) { keeper_ = keeper; }

  // Reports to a server the files with this home that are open here, so that it keeps those that
  // are removed. Call this every 2 s; it also keeps the locks of this client.
  void hold(std::uint32_t server, std::vector<FileId> files);
  // Sets, removes or tests a lock; `mode` has the bits of core/waits/file_locks.hpp. EAGAIN:
  // another lock is in the way.
  int lock(FileId id, std::uint32_t mode, const LockRequest& wanted, FileLock* found = nullptr);

  // Removes a file that the keeper has kept, unless it has a name again.
  int remove_unnamed(FileId id) { return remove_file(id, kNameless); }

  struct Name {
    FileId parent = 0;
    std::string_view name;
  };

  // Replaces `to` as rename(2) does, or returns EEXIST if `exclusive`.
  int rename(const Name& from, const Name& to, bool exclusive);
  // Makes both files have the name of the other one.
  int exchange(const Name& one, const Name& other);
  // Gives the file a further name. EEXIST, EPERM (a directory), EMLINK.
  int link(FileId id, const Name& name, FileStatus& status);
  int make_symbolic_link(const Name& name, std::string_view target, FileStatus& status);
  int read_symbolic_link(FileId id, std::string& target);
  // Makes a regular file without a name; link() can give it one, remove_unnamed() removes it.
  int make_unnamed(FileId parent, std::uint32_t mode, FileStatus& status);
  // Returns all entries, in no particular order. Those on servers that cannot be reached are left
  // out.
  int read_directory(FileId id, std::vector<Entry>& entries);

  // These functions handle attributes.
  // ESTALE: the file is gone, or it has no name, and is not open here (`is_opened`).
  int status(FileId id, FileStatus& status, bool is_opened = false);
  // ESTALE also if the file is open here.
  int named_status(FileId id, FileStatus& status);
  int set_mode(FileId id, std::uint32_t mode);
  int set_group(FileId id, std::uint32_t group);

  struct Times {
    std::uint32_t what = 0;  // kSetModified, kSetAccessed
    std::int64_t modified_ns = 0;
    std::int64_t accessed_ns = 0;
  };

  int set_times(FileId id, const Times& times);
  // Extended attributes. ENODATA: there is no such value.
  int read_value(FileId id, std::string_view name, std::string& value);
  int change_value(FileId id, std::string_view name, ValueChange change, std::string_view value);
  int list_values(FileId id, std::string& names);
  int truncate(FileId id, std::uint64_t size);
  // Forces data and attributes to the disks of their servers.
  int sync(FileId id);
  // All servers remove their data and exit.
  int destroy();
  // Waits at the home of the file until all ranks of a group have arrived; see Group.
  int gather(FileId id, std::uint64_t group, const Gathered& part);
  // Returns the statistics of each server, and in `errors` an errno value per server: a server that
  // cannot be reached has no statistics. Returns an error only if none can be reached.
  int statistics(std::vector<Statistics>& statistics, std::vector<int>* errors = nullptr);

  // These functions handle data. They return the number of bytes, or a negative errno value. A read
  // ends at the end of the file.
  ssize_t read(OpenFile& file, const Span& span);
  ssize_t write(OpenFile& file, const Span& span);
  // Writes at the end of the file; different writers never overlap.
  ssize_t append(OpenFile& file, const char* bytes, std::size_t length);
  // Copies bytes from one file to another, as copy_file_range(2) does. The servers move the data.
  // Returns the number of bytes, which can be less than `length`.
  ssize_t copy(const OpenFile& from, std::uint64_t from_offset, OpenFile& to,
               const Extent& to_extent);
  // Works as fallocate(2), for its modes that keep the place of other data.
  int allocate(OpenFile& file, int mode, const Extent& extent);
  // Works as lseek(2) with SEEK_DATA and SEEK_HOLE.
  int seek(OpenFile& file, bool is_hole, std::uint64_t offset, std::uint64_t& found);

  // A transfer is a read or write that runs while the caller does other work. Only one thread may
  // use it.
  class Transfer;
  std::unique_ptr<Transfer> start_read(OpenFile& file, const Span& span);
  std::unique_ptr<Transfer> start_write(OpenFile& file, const Span& span);

  // A transaction reads and writes several files in one step; see transaction.hpp.
  class Transaction;

  // The process is about to end: requests no longer wait for servers that do not answer.
  void stop_waiting();

  // Returns kLocalLayout if what is made in the directory gets that layout, and otherwise 0.
  std::uint16_t layout_in(FileId directory) const;

  std::uint64_t stripe() const { return description_.stripe; }

  std::uint32_t servers() const { return static_cast<std::uint32_t>(links_.size()); }

 private:
  Volume() = default;

  // Sends the request, waits for the reply, and returns the error.
  int call(std::uint32_t server, Call& call);
  int call_home(Op op, FileId id, Call& call);
  // Sends the same request to all servers except `except`, and returns the first error. `calls` is
  // indexed by server.
  int call_all(const Request& request, std::vector<Call>& calls,
               std::uint32_t except = kMaxServers);
  int named(Op op, const Name& name, Call& call);
  int unlink_kept(const Name& name, bool& is_kept);
  // A name of the file was removed or replaced. The file is removed with its last name, or kept
  // while it is open here.
  int drop_name(FileId id);
  int insert(const Name& name, const Entry& entry, std::uint16_t flags);
  int take_status(const Call& call, FileStatus& status, bool is_opened = false);
  int in_closed_directory(FileId directory);
  int add_wide(FileStatus& status);
  int sync_all(FileId id);
  int sync_names(FileId directory);
  int add_times(FileStatus& status, std::uint64_t version);
  int connect(const std::string& path, std::string& message);
  int make_wide(OpenFile& file, std::span<const Piece> pieces);
  // Takes one name of a file, and removes it with the last one.
  int remove_file(FileId id, std::uint16_t flags = 0);
  int remove_rest(FileId id, const Attributes& attributes);
  int seal(FileId id);
  int move(const Name& from, const Name& to, Call& one);
  int rename_across(const Name& from, const Name& to, bool exclusive, FileId& replaced);
  Striping striping(FileId id) const;

  // Returns on how many servers the file may have data.
  std::uint32_t spread(FileId id) const { return is_local(id) ? 1 : servers(); }

  // Returns a server of this node if there is one, or else `otherwise`. If there are several,
  // different values of `otherwise` give different ones.
  std::uint32_t own_server(std::uint32_t otherwise) const;
  int create_once(const Name& name, std::uint32_t mode, bool exclusive, FileStatus& status);
  // Makes a file of the layout `local` on a server other than that of its name.
  int create_on(std::uint32_t server, const Name& name, std::uint32_t mode, FileStatus& status);
  std::uint32_t server_of(const Name& name) const;

  VolumeDescription description_;
  std::vector<std::unique_ptr<Link>> links_;
  OpenFileTracker* keeper_ = nullptr;
  std::uint64_t client_ = 0;  // random; of locks
  // [server] This client has changed names there which may not be on its disk yet.
  std::deque<std::atomic<bool>> has_new_names_;
};

class Volume::Transfer {
 public:
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Returns the number of bytes or a negative errno value; the result is the same when called
  // again.
  ssize_t wait();

 private:
  friend class Volume;

  Transfer(Volume& volume, OpenFile& file, Op op) : volume_(volume), file_(file), op_(op) {}

  void start(const Span& span);
  void add(const Piece& piece, char* memory);
  void issue();
  int finish_all();
  ssize_t end_read();
  // Returns how many of the read bytes lie before `size`. `needs_more`: some of them did not exist
  // when they were read.
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
  std::vector<std::uint32_t> servers_;  // [call]
};

}  // namespace score::pario
