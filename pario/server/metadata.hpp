// Handles requests on names and attributes. They run at once. The caller commits the store, then
// removes the data of take_removals(), then sends the answers.
#pragma once

#include "pario/core/homes/directory_times.hpp"
#include "pario/server/io/file_uses.hpp"
#include "pario/server/io/transfer.hpp"
#include "pario/store/store.hpp"
#include "pario/store/trees.hpp"

#include <unordered_map>
#include <vector>

namespace score::pario {

class Metadata {
 public:
  struct Place {
    std::uint32_t server = 0;
    std::uint32_t servers = 1;
  };

  // Versions of the times of directories begin at `first_version`.
  Metadata(const Place& place, Store& store, DataFiles& data, std::uint64_t first_version = 1)
      : place_(place),
        store_(store),
        data_(data),
        trees_(store, data),
        uses_(store),
        directories_(first_version) {}

  // Runs a request. `now_ns`: wall time. Read, Write, Sync and Statistics are not supported. A
  // change that was carried out before (Once) is not repeated; its answer is returned again.
  void run(Transfer& transfer, std::int64_t now_ns);

  // Checks whether data of this file may be created here. Returns ENOENT if this is its home and it
  // does not exist.
  int check_exists(FileId id);

  FileUses& uses() { return uses_; }

  // Returns the times of directories with this home.
  DirectoryTimes& directories() { return directories_; }

  // Returns files whose data must be removed once the store is committed.
  std::vector<FileId> take_removals() { return std::exchange(removals_, {}); }

 private:
  int repeat(const Request& request, Answer& answer);
  void note_touched(Transfer& transfer) const;
  // Chooses the number of a new file, as the leader of two replicas did if there is one.
  int choose_id(const Request& request, FileId& id);
  int remember(const Request& request, const Answer& answer);
  int run_name(const Request& request, Answer& answer);
  int run_id(const Request& request, Transfer& transfer);
  int run_tree(const Request& request, Transfer& transfer);
  int create(const Request& request, Answer& answer);
  int make_file(const Request& request, Answer& answer);
  int unlink(const Request& request, Answer& answer);
  int insert(const Request& request, Answer& answer);
  int rename(const Request& request, Answer& answer);
  int remove(const Request& request, Answer& answer);
  int reserve(const Request& request, Answer& answer);
  int change(const Request& request);
  int seal(const Request& request);
  int set_time(const Request& request);
  // ESTALE: the directory is removed, or about to be.
  int check_open(FileId directory);
  // ENOENT: the file has no name, and the client does not have it open.
  int check_number(const Request& request);
  // Records that an entry of the directory has changed here.
  int touch(FileId directory);
  std::int64_t changed_of(FileId directory);
  int check_replaced(const Request& request, std::uint32_t mode, Target& old, bool& is_there);
  // Takes one name of a file whose home is here. The file is removed with the last one, or kept
  // while other clients may use it.
  int drop_name(const Request& request, FileId id, Answer& answer);
  // Returns the attributes if this is the home, otherwise those of the data here.
  int attributes_of(FileId id, Attributes& attributes);
  void add_directory_times(FileId id, Attributes& attributes);
  int describe(FileId id, Answer& answer);
  int describe(const Target& target, Answer& answer);

  Place place_;
  Store& store_;
  DataFiles& data_;
  Trees trees_;
  FileUses uses_;
  DirectoryTimes directories_;
  std::uint64_t client_ = 0;  // of the request that runs
  bool is_kept_ = false;      // it has kept a file without a name
  std::string_view sent_;     // the data of the request that runs
  std::vector<FileId> removals_;
  // The times of directories; in the store they are up to a second older.
  std::unordered_map<FileId, std::int64_t> changed_;
  std::int64_t now_ns_ = 0;
};

}  // namespace score::pario
