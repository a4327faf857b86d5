// Manages space that is reserved for clients that write data files themselves. The space that they
// really used is counted when a lease is renewed, and when it ends.
#pragma once

#include "pario/core/message.hpp"
#include "pario/store/data_files.hpp"

#include <algorithm>
#include <map>

namespace score::pario {

class Leases {
 public:
  static constexpr std::size_t kMost = 256;

  explicit Leases(DataFiles& files) : files_(files) {}

  // Ends the holder's lease of the file, if there is one, and reserves `bytes` anew (0: no new
  // lease). ENOSPC; ENOBUFS: too many leases.
  int take(const void* holder, std::shared_ptr<DataFile> file, std::uint64_t bytes,
           std::int64_t now_ms);
  // Ends the leases of a holder that has disconnected.
  void leave(const void* holder);
  // Counts the space that has been used so far, without ending leases.
  void count();
  // Ends leases older than kLeaseMs.
  void tick(std::int64_t now_ms);

  bool has(FileId file) const {
    return std::ranges::any_of(leases_,
                               [file](const auto& entry) { return entry.first.second == file; });
  }

  std::size_t size() const { return leases_.size(); }

 private:
  struct Lease {
    std::shared_ptr<DataFile> file;
    std::uint64_t bytes = 0;
    std::int64_t since_ms = 0;
  };

  template <typename Condition>
  void end_if(Condition is_over) {
    std::erase_if(leases_, [&](const auto& entry) {
      if (!is_over(entry.first.first, entry.second)) return false;
      files_.settle(*entry.second.file, entry.second.bytes);
      return true;
    });
  }

  DataFiles& files_;
  std::map<std::pair<const void*, FileId>, Lease> leases_;
};

}  // namespace score::pario
