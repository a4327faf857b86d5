// This file is tested by batch_policy_test.cpp.
#include "gang/schedule/backfill.hpp"

#include <algorithm>

namespace score::gang {

namespace {

std::int64_t nodes_of(const Job& job) {
  if (job.placed) return static_cast<std::int64_t>(job.cells.nodes.size());
  return std::max(1U, job.shape.nodes);
}

}  // namespace

Duration estimate_of(const Job& job) {
  Duration least = kNoEstimate;
  for (const Duration limit : {job.request.scheduled_limit, job.request.wall_limit}) {
    if (limit > Duration::zero()) least = std::min(least, limit);
  }
  return least;
}

// ---- free nodes over time ---------------------------------------------------------------------

void Profile::add(TimePoint t, std::int64_t nodes) {
  auto at = std::lower_bound(steps_.begin(), steps_.end(), t,
                             [](const Step& s, TimePoint time) { return s.from < time; });
  if (at == steps_.end() || at->from != t) {
    at = steps_.insert(at, {t, at == steps_.begin() ? 0 : std::prev(at)->free});
  }
  for (; at != steps_.end(); ++at) at->free += nodes;
}

TimePoint Profile::earliest(std::int64_t nodes, Duration length) const {
  TimePoint start = steps_.front().from;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].from >= start + length) break;
    if (steps_[i].free < nodes && i + 1 < steps_.size()) start = steps_[i + 1].from;
  }
  return start;
}

std::int64_t Profile::free_at(TimePoint t) const {
  std::int64_t free = steps_.front().free;
  for (const Step& step : steps_) {
    if (step.from <= t) free = step.free;
  }
  return free;
}

// ---- the line ---------------------------------------------------------------------------------

bool Backfill::may_start(const Job& job) const {
  if (kind_ == Placement::Conservative) {
    return profile_.earliest(nodes_of(job), estimate_of(job)) <= now_;
  }
  if (!first_ || !(first_->wait < job.wait)) return true;
  if (kind_ == Placement::Fcfs) return false;
  return now_ + estimate_of(job) <= first_->start || nodes_of(job) <= first_->spare;
}

bool Backfill::stays(const Job& job) {
  const std::int64_t nodes = nodes_of(job);
  const Duration length = estimate_of(job);
  if (kind_ == Placement::Conservative) {
    const TimePoint start = std::max(profile_.earliest(nodes, length), now_ + Duration{1});
    profile_.take(start, start + length, nodes);
    return true;
  }
  if (!first_) {
    const TimePoint start = std::max(profile_.earliest(nodes, kNoEstimate), now_ + Duration{1});
    first_ = Reservation{job.wait, start, profile_.free_at(start) - nodes};
  }
  return true;
}

void Backfill::placed(const Job& job) {
  const Running running{now_ + estimate_of(job), nodes_of(job)};
  running_[job.id] = running;
  profile_.take(now_, running.end, running.nodes);
  const bool passes = first_ && first_->wait < job.wait;
  if (passes && running.end > first_->start) first_->spare -= running.nodes;
}

void Backfill::unplaced(const Job& job) {
  running_.erase(job.id);
}

}  // namespace score::gang
