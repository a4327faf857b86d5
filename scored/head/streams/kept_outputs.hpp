#pragma once
// KeptOutputs holds the end of the output of jobs that have ended and whose output no front end
// took. The limits suffice to look at the jobs of the last minutes. It is pure.

#include "base/limits.hpp"
#include "base/shares.hpp"
#include "scored/head/streams/job_output.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace score::head {

class KeptOutputs {
 public:
  static constexpr std::size_t kMaxBytes = 16 * limits::kMiB;
  static constexpr std::size_t kMaxBytesOfUser = kMaxBytes / 4;
  static_assert(JobOutput::kKeptForClients < kMaxBytesOfUser, "the output of a job fits");

  using Chunks = std::vector<std::shared_ptr<const OutputChunk>>;

  // Adds the output of a job; the oldest ones of its user, and then of all users, make room.
  void add(JobId job, UserId user, Chunks chunks);

  // Returns an empty range if nothing is kept of the job.
  [[nodiscard]] std::span<const std::shared_ptr<const OutputChunk>> of(JobId job) const;

  [[nodiscard]] const ShareCounter<UserId>& counts() const { return counts_; }

 private:
  struct Kept {
    JobId job;
    UserId user;
    Chunks chunks;
    std::size_t bytes = 0;
  };

  [[nodiscard]] bool is_over(UserId user) const;
  void drop(std::list<Kept>::iterator kept);

  std::list<Kept> kept_;  // oldest first
  ShareCounter<UserId> counts_{shares::kKeptOutputs};
  std::size_t bytes_ = 0;
  std::map<UserId, std::size_t> bytes_of_;
};

}  // namespace score::head
