// When output of a job may go on to the head, on a node that other jobs use too. Shepherd and node
// daemon carry it on whatever processor is free or theirs by priority, so a flood takes processor
// time from other jobs, even where its own tasks stay on their own cores. Pure; one thread.
#pragma once

#include "base/async/token_bucket.hpp"
#include "base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace score::node {

struct JobHere {
  JobId job;
  std::optional<UserId> user;            // none: unknown
  std::span<const std::uint32_t> cores;  // of the node
};

// Whether output of the one takes processor time from the other. Jobs of one user on the same cores
// do not count: they are an allocation and its steps, or take turns.
[[nodiscard]] bool competes(const JobHere& one, const JobHere& other);

class OutputBudget {
 public:
  // Of the time of all processors of the node, for the output of all jobs of one user.
  static constexpr double kShare = 0.01;
  // What is carried at once, after a pause: so much of that time.
  static constexpr Duration kBurst = std::chrono::seconds{4};
  // Output that must wait goes on at multiples of this: many frames for the wake-ups of one.
  static constexpr Duration kBatch = std::chrono::milliseconds{50};
  // Processor time of shepherd and node daemon, measured beside busy processors.
  static constexpr Duration kPerFrame = std::chrono::microseconds{20};
  static constexpr double kNanosecondsPerByte = 8;

  // processors: of the node; 0 counts as 1.
  explicit OutputBudget(std::size_t processors);

  // When a frame of so many bytes that came at `now` may go on: at once, or when the user's share
  // allows it. Frames that wait until then keep their order.
  TimePoint reserve(UserId user, std::size_t bytes, TimePoint now);

  // Users whose share is not full, and some others.
  [[nodiscard]] std::size_t size() const { return users_.size(); }

 private:
  struct Share {
    TokenBucket bucket;
    TimePoint whole{};  // full again by then
  };

  double rate_;  // nanoseconds per second
  std::map<UserId, Share> users_;
};

}  // namespace score::node
