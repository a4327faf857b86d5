#pragma once
// Backfill decides which job may start before jobs ahead of it in the queue. It estimates run times
// by the jobs' time limits (of scheduled or of elapsed time). Nodes are only counted, as if they
// were alike.
//
//   Fcfs          none
//   Easy          one that does not delay the first in the queue (Lifka 1995)
//   Conservative  one that delays no job ahead of it (Mu'alem, Feitelson 2001)

#include "gang/state/config.hpp"
#include "gang/state/job.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace score::gang {

inline constexpr Duration kNoEstimate = std::chrono::hours{24 * 365};

// Returns the smaller of the job's time limits; kNoEstimate if it has none.
Duration estimate_of(const Job& job);

// A Profile gives the number of free nodes over time: from steps[i].from on there are
// steps[i].free.
class Profile {
 public:
  struct Step {
    TimePoint from{};
    std::int64_t free = 0;
  };

  void reset(TimePoint now, std::int64_t free) { steps_ = {{now, free}}; }

  // From t on there are this many more (or fewer).
  void add(TimePoint t, std::int64_t nodes);

  // Takes the nodes from `from` until `to`.
  void take(TimePoint from, TimePoint to, std::int64_t nodes) {
    add(from, -nodes);
    add(to, nodes);
  }

  // Returns the first time from which this many are free for this long.
  [[nodiscard]] TimePoint earliest(std::int64_t nodes, Duration length) const;
  [[nodiscard]] std::int64_t free_at(TimePoint t) const;

 private:
  std::vector<Step> steps_ = {Step{}};  // ascending, not empty
};

class Backfill {
 public:
  explicit Backfill(Placement kind) : kind_(kind) {}

  // Begins a pass over the queue with this many free nodes.
  // Begins a pass over the queue with this many free nodes, of those that `counted` returns true
  // for.
  template <typename Counted>
  void begin(TimePoint now, std::int64_t free, Counted&& counted) {
    now_ = now;
    first_.reset();
    profile_.reset(now, free);
    if (kind_ == Placement::Fcfs) return;
    for (const auto& [id, running] : running_) {
      if (counted(id)) profile_.add(std::max(running.end, now + Duration{1}), running.nodes);
    }
  }

  void begin(TimePoint now, std::int64_t free) {
    begin(now, free, [](JobId) { return true; });
  }

  [[nodiscard]] bool may_start(const Job& job) const;
  // Records that the job stays in the queue. Returns false if no job behind it can start.
  bool stays(const Job& job);
  void placed(const Job& job);
  void unplaced(const Job& job);

 private:
  struct Running {
    TimePoint end{};  // as estimated
    std::int64_t nodes = 0;
  };

  // For EASY this is the latest start of the first in the queue, with the nodes that are left then.
  struct Reservation {
    WaitKey wait;
    TimePoint start{};
    std::int64_t spare = 0;
  };

  Placement kind_;
  TimePoint now_{};
  std::map<JobId, Running> running_;
  Profile profile_;
  std::optional<Reservation> first_;
};

}  // namespace score::gang
