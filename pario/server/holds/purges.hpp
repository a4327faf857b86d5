// Removes files of a part that were kept without a name and are no longer needed, and locks of
// clients that are lost. Both are ordinary requests, which this server sends to the leader of the
// part, so that the other replica and the other servers of the volume take part.
#pragma once

#include "pario/server/io/file_uses.hpp"
#include "pario/server/io/peers.hpp"
#include "pario/store/store.hpp"

#include <cstdint>
#include <memory>
#include <set>

namespace score::pario {

class Purges {
 public:
  struct Place {
    std::uint32_t part = 0;
    std::uint32_t servers = 1;
  };

  // Requests of `peers` go to the leaders of parts.
  Purges(const Place& place, FileUses& uses, Store& store, Asker& peers)
      : place_(place), uses_(uses), store_(store), peers_(peers) {}

  // Call this once per second. `leads`: this server leads the part.
  void tick(bool leads, std::int64_t now_ns);

 private:
  struct Purge {
    FileId id = 0;
    std::uint32_t waits_for = 0;  // servers
    bool has_failed = false;
  };

  bool may_be_wide(FileId id);
  void start(FileId id);
  void remove_here(FileId id);
  void ended(const std::shared_ptr<Purge>& purge, int error);

  Place place_;
  FileUses& uses_;
  Store& store_;
  Asker& peers_;
  std::set<FileId> running_;
  bool has_led_ = false;
};

}  // namespace score::pario
