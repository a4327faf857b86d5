// Handles the requests of clients that concern neither names nor data: ranks that meet, and direct
// access to data.
#pragma once

#include "pario/core/waits/rank_barriers.hpp"
#include "pario/server/connection.hpp"
#include "pario/server/parts.hpp"
#include "pario/store/leases.hpp"

#include <functional>
#include <unordered_map>
#include <vector>

namespace score::pario {

class ClientRequests {
 public:
  // Data is that of `part`. `finish` receives each Gather with its answer.
  ClientRequests(Part& part, std::function<void(TransferPtr)> finish)
      : part_(part), leases_(part.files), finish_(std::move(finish)) {}

  void gather(TransferPtr transfer);
  // These handle an OpenData and a Lease. They return an errno value.
  int describe_data(Answer& answer) const;
  int lease(const Transfer& transfer);

  // Returns true if there is a direct writer. It has a lease, or, if it was stopped in the middle
  // of a write, a lock of the file.
  bool has_direct_writer(FileId id);
  // A client has disconnected: the ranks that wait with it are informed.
  void leave(Connection& connection);
  // Call this once per second.
  void tick();

  // Counts the space of files that clients write directly.
  void count_space() { leases_.count(); }

  // Returns the bytes that were written directly, as reported by clients with leases.
  std::uint64_t written_directly() const { return written_directly_; }

 private:
  void end_parked(const std::vector<RankBarriers::Answer>& answers);

  Part& part_;
  Leases leases_;
  std::function<void(TransferPtr)> finish_;
  RankBarriers rank_barriers_;
  std::unordered_map<std::uint64_t, TransferPtr> parked_;  // requests that wait for other ranks
  std::uint64_t last_token_ = 0;
  std::uint64_t written_directly_ = 0;
};

}  // namespace score::pario
