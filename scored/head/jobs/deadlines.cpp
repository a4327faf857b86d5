#include "scored/head/jobs/deadlines.hpp"

namespace score::head {

void Deadlines::set(JobId job, DeadlineKind kind, TimePoint at) {
  clear(job, kind);
  at_[{job, kind}] = at;
  order_.emplace(at, job, kind);
}

void Deadlines::clear(JobId job, DeadlineKind kind) {
  const auto found = at_.find({job, kind});
  if (found == at_.end()) return;
  order_.erase({found->second, job, kind});
  at_.erase(found);
}

void Deadlines::clear(JobId job) {
  for (const DeadlineKind kind :
       {DeadlineKind::Kill, DeadlineKind::Immediate, DeadlineKind::FrontEnd, DeadlineKind::Drop}) {
    clear(job, kind);
  }
}

std::optional<TimePoint> Deadlines::next() const {
  if (order_.empty()) return std::nullopt;
  return std::get<0>(*order_.begin());
}

std::vector<Deadlines::Due> Deadlines::take_due(TimePoint now) {
  std::vector<Due> due;
  while (!order_.empty() && std::get<0>(*order_.begin()) <= now) {
    const auto [at, job, kind] = *order_.begin();
    due.push_back({job, kind});
    clear(job, kind);
  }
  return due;
}

}  // namespace score::head
