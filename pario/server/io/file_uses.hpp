// Knows which clients use the files whose home is here: files without a name, which are kept while
// somebody needs them, and locks. Files and locks are in the store, so both survive the process.
#pragma once

#include "pario/core/homes/nameless.hpp"
#include "pario/server/io/transfer.hpp"
#include "pario/store/store.hpp"

#include <string_view>
#include <vector>

namespace score::pario {

// This class is not thread-safe. Its int results are 0 or an errno value; times are in ns.
class FileUses {
 public:
  explicit FileUses(Store& store) : store_(store) {}

  // Notes that `client` gets the number of the file in this answer.
  void answered(const Request& request, const Answer& answer, std::uint64_t client,
                std::int64_t now);
  // Handles a Hold; `ids` is its data.
  int hold(std::string_view ids, std::uint64_t client, std::int64_t now);
  // Returns true if the file must be kept if the request removes its last name. A follower does
  // what its leader did.
  bool must_keep(const Request& request, FileId id, std::uint64_t client, std::int64_t now) const;
  // Stores that the file is kept without a name. `inode` is stored too.
  int keep(FileId id, Inode& inode, std::int64_t now);
  // The client that has made a file without a name, or has removed its last name, has it open.
  int keep_open(FileId id, std::uint64_t client, std::int64_t now);
  // The file has a name again.
  int named(FileId id);

  // Call this when the file is removed.
  void removed(FileId id) { nameless_.forget(id); }

  bool is_kept(FileId id) const { return nameless_.is_kept(id); }

  std::size_t kept_count() const { return nameless_.size(); }

  // Handles a Lock; `data` is that of the request. The number of the answer is that of the locks
  // that the client has in this file afterwards.
  int lock(const Request& request, std::string_view data, Answer& answer);

  // Returns files that no client needs any more. Call this once per second while this server
  // leads.
  std::vector<FileId> expired(std::int64_t now);
  // Call this when the server starts, or begins to lead: it reads what is kept from the store.
  int load(std::int64_t now);

 private:
  Store& store_;
  NamelessFiles nameless_;
};

}  // namespace score::pario
