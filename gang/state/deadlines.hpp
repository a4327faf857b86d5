#pragma once
// Deadlines keeps at most one deadline of each kind per job, in order of time.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace score::gang {

enum class DeadlineKind : std::uint8_t {
  Launch,     // every node has prepared
  Begin,      // the tasks exist on every node
  Kill,       // nothing of an ending job is left
  Wall,       // limit of elapsed time
  Scheduled,  // limit of scheduled time
  Idle,       // the job must be judged again: idle, deadlocked
};

class Deadlines {
 public:
  struct Due {
    base::TimePoint at{};
    DeadlineKind kind = DeadlineKind::Launch;
    base::JobId job{0};
  };

  // Sets a deadline and replaces an earlier one of the same kind.
  void set(base::JobId job, DeadlineKind kind, base::TimePoint at);
  void clear(base::JobId job);

  // Removes and returns the earliest deadline if it is due by `now`. Equal times are ordered by
  // kind, then by job.
  std::optional<Due> take_due(base::TimePoint now);
  [[nodiscard]] std::optional<base::TimePoint> next() const;

 private:
  std::set<std::tuple<base::TimePoint, DeadlineKind, base::JobId>> queue_;
  std::map<std::pair<base::JobId, DeadlineKind>, base::TimePoint> times_;
};

}  // namespace score::gang
