// Decides when a job's output may be passed on to the head, on a node that other jobs also use.
// Shepherd and node daemon carry output on any processor that is free or that their priority gives
// them. A flood of output therefore takes processor time from other jobs, even if the job's tasks
// stay on their own cores. Pure; one thread.
#pragma once

#include "base/ids.hpp"
#include "scored/node/link/user_pace.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace score::node {

struct JobHere {
  JobId job;
  std::optional<UserId> user;            // none: unknown
  std::span<const std::uint32_t> cores;  // of the node
};

// Returns true if output of one job takes processor time from the other. Jobs of one user on the
// same cores do not count: they are an allocation and its steps, or take turns.
[[nodiscard]] bool competes(const JobHere& one, const JobHere& other);

class OutputBudget {
 public:
  // The share of all processors' time that the output of all jobs of one user may take.
  static constexpr double kShare = 0.01;
  // The burst that is passed on at once after a pause, as a time at that share.
  static constexpr Duration kBurst = std::chrono::seconds{4};
  // Output that must wait is released at multiples of this, so that one wake-up serves many frames.
  static constexpr Duration kBatch = std::chrono::milliseconds{50};
  // The processor time of shepherd and node daemon per frame, measured next to busy processors.
  static constexpr Duration kPerFrame = std::chrono::microseconds{20};
  static constexpr double kNanosecondsPerByte = 8;

  // `processors` is the number of processors of the node; 0 counts as 1.
  explicit OutputBudget(std::size_t processors);

  // Reserves the frame's share and returns the time at which it may be passed on: at once, or when
  // the user's share allows it. A frame of this size has arrived at `now`. Waiting frames keep
  // their order.
  TimePoint reserve(UserId user, std::size_t bytes, TimePoint now);

  // Returns the number of users that are stored.
  [[nodiscard]] std::size_t size() const { return pace_.size(); }

 private:
  UserPace pace_;  // in nanoseconds
};

}  // namespace score::node
