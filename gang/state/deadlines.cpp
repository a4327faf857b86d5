#include "gang/state/deadlines.hpp"

namespace score::gang {

using base::JobId;
using base::TimePoint;

void Deadlines::set(JobId job, DeadlineKind kind, TimePoint at) {
  const auto [entry, is_new] = times_.try_emplace({job, kind}, at);
  if (!is_new) queue_.erase({entry->second, kind, job});
  entry->second = at;
  queue_.emplace(at, kind, job);
}

void Deadlines::clear(JobId job) {
  auto entry = times_.lower_bound({job, DeadlineKind::Launch});
  while (entry != times_.end() && entry->first.first == job) {
    queue_.erase({entry->second, entry->first.second, job});
    entry = times_.erase(entry);
  }
}

std::optional<Deadlines::Due> Deadlines::take_due(TimePoint now) {
  if (queue_.empty() || std::get<TimePoint>(*queue_.begin()) > now) return std::nullopt;
  const auto [at, kind, job] = *queue_.begin();
  queue_.erase(queue_.begin());
  times_.erase({job, kind});
  return Due{at, kind, job};
}

std::optional<TimePoint> Deadlines::next() const {
  if (queue_.empty()) return std::nullopt;
  return std::get<TimePoint>(*queue_.begin());
}

}  // namespace score::gang
