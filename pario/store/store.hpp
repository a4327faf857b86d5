// Stores names and attributes of one server in LMDB. Changes of one turn of the server's loop are
// one transaction; a killed process leaves the last one that was committed. After a commit the
// pages are in the kernel's cache; fsync(2) of fd() puts them on the disk (docs/adr/0081).
#pragma once

#include "pario/core/message.hpp"
#include "pario/core/waits/file_locks.hpp"

#include <cstdint>
#include <functional>
#include <lmdb.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

struct Inode {
  std::uint32_t mode = 0;
  std::uint32_t wide = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::int64_t accessed_ns = 0;  // 0: as modified_ns
  std::uint32_t group = kNoGroup;
  std::uint32_t links = 1;  // names
};

struct Target {
  FileId id = 0;
  std::uint32_t mode = 0;
};

// This class is not thread-safe. Its int results are 0 or an errno value.
class Store {
 public:
  struct Identity {
    std::string volume;
    std::uint32_t server = 0;
    std::uint32_t servers = 1;
    std::uint64_t stripe = 0;
  };

  // Opens the store in `directory`, or creates it if there is none. EINVAL: it belongs to a
  // different volume or server; `message` says to which.
  static int open(const std::string& directory, const Identity& identity,
                  std::unique_ptr<Store>& store, std::string& message);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  int find(FileId parent, std::string_view name, Target& target);
  int put(FileId parent, std::string_view name, const Target& target);
  int remove(FileId parent, std::string_view name);  // ENOENT
  int has_entries(FileId parent, bool& has);
  // Appends the entries after the name `after`, in the order of their bytes, at most `most` bytes.
  int read_entries(FileId parent, std::string_view after, std::size_t most, std::string& bytes);

  int get(FileId id, Inode& inode);
  int put(FileId id, const Inode& inode);
  // Removes the values of the file too.
  int remove(FileId id);
  // A sealed directory is about to be removed: no entry can be created in it.
  int is_sealed(FileId id, bool& sealed);
  int set_sealed(FileId id, bool sealed);
  // Returns when the entries of a directory on this server last changed; 0: not known.
  int get_changed(FileId id, std::int64_t& changed_ns);
  int put_changed(FileId id, std::int64_t changed_ns);
  int remove_changed(FileId id);
  // Returns the offset up to which space for appended data of a file was reserved; 0: not known.
  int get_end(FileId id, std::uint64_t& end);
  int put_end(FileId id, std::uint64_t end);
  int remove_end(FileId id);
  // A file has values by name: extended attributes, and with the empty name the target of a
  // symbolic link. ENODATA: there is no such value.
  int find_value(FileId id, std::string_view name, std::string& value);
  int store_value(FileId id, std::string_view name, std::string_view value);
  int drop_value(FileId id, std::string_view name);
  // Appends all names, each followed by a 0. ERANGE: they have more than `most` bytes.
  int list_values(FileId id, std::size_t most, std::string& names);
  int drop_values(FileId id);
  // A file that has lost its last name but is still kept; see core/homes/nameless.hpp.
  int set_kept(FileId id, bool is_kept);
  int list_kept(std::vector<FileId>& files);
  // The locks of a file; none: the list is empty.
  int get_locks(FileId id, std::vector<FileLock>& locks);
  int put_locks(FileId id, const std::vector<FileLock>& locks);
  int list_locked(std::vector<FileId>& files);
  // Returns a number that no file of this server has had. ENOSPC: the rest of the disk is reserved
  // for removals.
  int make_id(FileId& id);
  std::uint64_t count();

  // Describes an old entry that must be removed, unless it refers to a different file in the
  // meantime.
  struct Move {
    FileId parent = 0;
    std::string name;
    FileId id = 0;
  };

  int put_move(const Move& move);
  int has_move(const Move& move, bool& has);
  int remove_move(const Move& move);
  int list_moves(std::vector<Move>& moves);

  // The answer to a change is stored together with the change.
  struct Answered {
    std::uint32_t sequence = 0;
    std::int64_t time_ns = 0;
    std::uint64_t number = 0;
    std::string body;  // at most sizeof(Attributes)
  };

  int get_answer(const Once& once, Answered& answered);
  int put_answer(const Once& once, const Answered& answered);
  // Removes some answers that were put before `before_ns`; repeated calls reach them all.
  int forget_answers(std::int64_t before_ns);

  // These functions store numbers for the caller, by name: at most 16 letters. ENOENT.
  int get_number(std::string_view name, std::uint64_t& number);
  int put_number(std::string_view name, std::uint64_t number);

  // Prevents that a number which the other replica has chosen is chosen again.
  int take_id(FileId id);

  // --- Filling another replica of the same part ---
  // Passes all rows to `send`, in batches of at most kMaxDataBytes.
  int dump(const std::function<void(std::uint32_t table, std::string rows)>& send);
  // Stores rows from dump(). EINVAL: the bytes are not valid rows.
  int load(std::uint32_t table, std::string_view rows);
  // Removes all rows except the identity.
  int clear();
  // Must be called after load().
  int reload();

  bool has_changes() const { return write_ != nullptr; }

  // Ends the turn. On an error all changes since the last commit are undone.
  int commit();

  int fd() const { return fd_; }

 private:
  explicit Store(std::uint32_t server) : server_(server) {}

  int start(const std::string& directory, const Identity& identity, std::string& message);
  int dump_table(std::uint32_t table, MDB_dbi handle,
                 const std::function<void(std::uint32_t table, std::string rows)>& send);
  int check_identity(const Identity& identity, std::string& message);
  int reading(MDB_txn*& transaction);
  int writing(MDB_txn*& transaction);
  bool keep_reserve();
  int get_value(MDB_dbi table, std::string_view key, std::string_view& value);
  int put_value(MDB_dbi table, std::string_view key, std::string_view value);
  int remove_value(MDB_dbi table, std::string_view key);
  // The functions below access the table "others".
  template <typename T>
  int get_other(std::string_view key, T& value);
  int remove_other(std::string_view key);
  int list_ids(MDB_dbi table, std::string_view prefix, std::vector<FileId>& files);

  std::uint32_t server_;
  std::string identity_;
  MDB_env* environment_ = nullptr;
  MDB_txn* read_ = nullptr;  // reset between turns
  bool is_reading_ = false;
  MDB_txn* write_ = nullptr;
  MDB_dbi entries_ = 0;
  MDB_dbi inodes_ = 0;
  MDB_dbi others_ = 0;
  MDB_dbi answers_ = 0;
  MDB_dbi values_ = 0;
  MDB_dbi locks_ = 0;
  std::string forgotten_;       // key in answers_ at which forget_answers() stopped
  std::uint64_t next_ = 0;      // number of the next file
  std::uint64_t next_end_ = 0;  // lower numbers are reserved in the store
  int fd_ = -1;
  std::uint64_t allocated_ = 0;  // bytes of the file for which disk space is allocated
};

}  // namespace score::pario
