// Keeps the times of directories at their homes, although their entries are spread over all
// servers. Each server knows when entries changed there. The home knows whether a server may have
// changed entries since the times of all servers were last collected; only then must they be asked
// again. So the status of a directory usually takes one request, whatever the number of servers.
//
// A server that changes an entry reports to the home before it answers, but only once until it is
// asked for its time. A client that has asked all servers gives the latest time to the home, with
// the version that the home had named before. If a report has changed the version meanwhile, the
// time is not taken.
//
// This class is what the home knows. It is in memory only: after a restart all servers are asked.
#pragma once

#include "pario/core/layout.hpp"

#include <cstdint>
#include <unordered_map>

namespace score::pario {

class DirectoryTimes {
 public:
  static constexpr std::size_t kMostDirectories = 100'000;

  // Versions begin at `first`, which must be greater than all that an earlier process has used.
  explicit DirectoryTimes(std::uint64_t first) : version_(first), unknown_(first) {}

  // A new directory has no entries elsewhere.
  void made(FileId directory);
  // A server reports that it changes entries.
  void reported(FileId directory);
  // Returns true if the servers must be asked.
  bool is_open(FileId directory) const;
  std::uint64_t version(FileId directory) const;
  // Takes the latest time of the other servers, unless the version has changed.
  void settle(FileId directory, std::uint64_t version, std::int64_t time_ns);
  // Returns the time that was settled; 0: none is known.
  std::int64_t time(FileId directory) const;
  // A program has set the time, at the other servers before.
  void set_time(FileId directory, std::int64_t time_ns);

  void forget(FileId directory) { known_.erase(directory); }

  // Nothing is known any more.
  void clear();

 private:
  struct Known {
    std::uint64_t version = 0;
    std::int64_t time_ns = 0;
    bool is_open = false;
  };

  void put(FileId directory, const Known& known);

  std::unordered_map<FileId, Known> known_;
  std::uint64_t version_;  // the latest
  std::uint64_t unknown_;  // of directories that are not in known_
};

}  // namespace score::pario
