#pragma once
// Deadlines keeps at most one deadline per kind and job, in order of time. It is pure.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace score::inline base {

template <class Kind>
class Deadlines {
 public:
  struct Due {
    TimePoint at{};
    Kind kind{};
    JobId job{0};

    friend bool operator==(const Due&, const Due&) = default;
  };

  // Sets a deadline and replaces an earlier one of the same kind.
  void set(JobId job, Kind kind, TimePoint at) {
    clear(job, kind);
    times_[{job, kind}] = at;
    queue_.emplace(at, kind, job);
  }

  void clear(JobId job, Kind kind) {
    const auto entry = times_.find({job, kind});
    if (entry == times_.end()) return;
    queue_.erase({entry->second, kind, job});
    times_.erase(entry);
  }

  void clear(JobId job) {
    auto entry = times_.lower_bound({job, Kind{}});
    while (entry != times_.end() && entry->first.first == job) {
      queue_.erase({entry->second, entry->first.second, job});
      entry = times_.erase(entry);
    }
  }

  [[nodiscard]] bool has(JobId job, Kind kind) const { return times_.contains({job, kind}); }

  [[nodiscard]] std::optional<TimePoint> next() const {
    if (queue_.empty()) return std::nullopt;
    return std::get<TimePoint>(*queue_.begin());
  }

  // Removes and returns the earliest deadline if it is due by `now`. Equal times are ordered by
  // kind, then by job.
  std::optional<Due> take_due(TimePoint now) {
    if (queue_.empty() || std::get<TimePoint>(*queue_.begin()) > now) return std::nullopt;
    const auto [at, kind, job] = *queue_.begin();
    clear(job, kind);
    return Due{at, kind, job};
  }

 private:
  std::set<std::tuple<TimePoint, Kind, JobId>> queue_;
  std::map<std::pair<JobId, Kind>, TimePoint> times_;  // lower_bound needs Kind{} to be the least
};

}  // namespace score::inline base
