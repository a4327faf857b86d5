// Decides how long a server keeps a file that has lost its last name (docs/adr/0137). It is kept
// while a client may use its number: for some seconds after a client has asked for it, and as long
// as a client reports from time to time that the file is open there. This class is pure; times are
// in ns, and clients are numbers of connections, 0 for an unknown one.
#pragma once

#include "pario/core/layout.hpp"

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

namespace score::pario {

class NamelessFiles {
 public:
  using Client = std::uint64_t;

  // A kernel keeps names for a second. The times allow for slow nodes.
  static constexpr std::int64_t kAskedNs = 5'000'000'000;
  // Clients report their open files every 2 s.
  static constexpr std::int64_t kOpenNs = 15'000'000'000;
  static constexpr std::size_t kMostAsked = 1'000'000;

  // A client has received the file's number. `will_open`: it is about to open it, so the file is
  // kept even if the same client removes the name.
  void asked(FileId id, Client client, bool will_open, std::int64_t now);
  // A client has the file open.
  void opened(FileId id, Client client, std::int64_t now);
  // Returns true if the file must be kept if `remover` removes its last name now.
  bool is_needed(FileId id, Client remover, std::int64_t now) const;

  void keep(FileId id) { kept_.insert(id); }

  // The file has a name again, or was removed.
  void forget(FileId id) { kept_.erase(id); }

  bool is_kept(FileId id) const { return kept_.contains(id); }

  std::size_t size() const { return kept_.size(); }

  // Forgets which files are kept; clients that have asked are still known.
  void clear() { kept_.clear(); }

  // Drops what has expired. Returns at most `most` kept files that no client needs.
  std::vector<FileId> expired(std::size_t most, std::int64_t now);

 private:
  struct Use {
    Client client = 0;
    bool will_open = false;
    std::int64_t until = 0;
  };

  void add(FileId id, const Use& use);

  std::unordered_map<FileId, std::vector<Use>> uses_;
  std::set<FileId> kept_;
};

}  // namespace score::pario
