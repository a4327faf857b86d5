#pragma once
// Which job may start before those ahead of it in line, by estimates of run times: a job's time
// limit (of scheduled or of elapsed time). Nodes are counted and taken to be alike.
//
//   Fcfs          none
//   Easy          one that does not delay the first in line (Lifka 1995)
//   Conservative  one that delays no job ahead of it (Mu'alem, Feitelson 2001)

#include "gang/state/config.hpp"
#include "gang/state/job.hpp"

#include <map>
#include <optional>
#include <vector>

namespace score::gang {

inline constexpr Duration kNoEstimate = std::chrono::hours{24 * 365};

// The smaller of the job's time limits; kNoEstimate if it has none.
Duration estimate_of(const Job& job);

// Free nodes over time: from steps[i].from on there are steps[i].free.
class Profile {
 public:
  struct Step {
    TimePoint from{};
    std::int64_t free = 0;
  };

  void reset(TimePoint now, std::int64_t free) { steps_ = {{now, free}}; }

  // From t on there are so many more (fewer).
  void add(TimePoint t, std::int64_t nodes);

  // Nothing is taken before `from`, nor from `to` on.
  void take(TimePoint from, TimePoint to, std::int64_t nodes) {
    add(from, -nodes);
    add(to, nodes);
  }

  // The first time from which on so many are free for so long.
  [[nodiscard]] TimePoint earliest(std::int64_t nodes, Duration length) const;
  [[nodiscard]] std::int64_t free_at(TimePoint t) const;

 private:
  std::vector<Step> steps_ = {Step{}};  // ascending, not empty
};

class Backfill {
 public:
  explicit Backfill(Placement kind) : kind_(kind) {}

  // A pass over the line begins; so many nodes are free.
  void begin(TimePoint now, std::int64_t free);
  [[nodiscard]] bool may_start(const Job& job) const;
  // The job stays in line. False: no job behind it can start.
  bool stays(const Job& job);
  void placed(const Job& job);
  void unplaced(const Job& job);

 private:
  struct Running {
    TimePoint end{};  // as estimated
    std::int64_t nodes = 0;
  };

  // EASY: when the first in line starts at the latest, and the nodes that are left then.
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
