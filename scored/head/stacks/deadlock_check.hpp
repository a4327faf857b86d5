#pragma once
// DeadlockCheck confirms that a job is deadlocked before anybody is told (docs/adr/0136). It stops
// the job twice at slice ends, with time to run in between, and compares where the ranks wait. A
// job that changes meanwhile, or one of whose ranks is not in the function that it names, is not
// deadlocked. Where stacks cannot be read, what the nodes know decides alone. All calls come from
// one thread.

#include "scored/head/stacks/stacks_collector.hpp"
#include "scored/head/stacks/wait_picture.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace score::head {

class DeadlockCheck {
 public:
  // All references must outlive this object.
  DeadlockCheck(HeadContext& head, StacksCollector& stacks) : head_(head), stacks_(stacks) {}

  // Must be called after each change of a job.
  void changed(JobId job);

  // ---- called in turn
  void tick(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Check {
    std::uint32_t suspicion = 0;     // see gang::JobView
    std::optional<TimePoint> due{};  // of the next reading; none: it is in progress
    std::optional<WaitPicture> first{};
  };

  void read(JobId job, Check& check);
  void take(JobId job, std::uint32_t suspicion, const wire::Stacks& stacks);
  void answer(JobId job, bool is_deadlock);

  HeadContext& head_;
  StacksCollector& stacks_;
  std::map<JobId, Check> checks_;
};

}  // namespace score::head
