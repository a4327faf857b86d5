#include "monitor/meters/run_history.hpp"

#include "base/limits.hpp"
#include "base/model/model.hpp"

#include <algorithm>

namespace score::monitor {

// Nothing if it is open. More than a node may have are a lie.
void RunHistory::begin(JobId job, TimePoint at) {
  if (open_.size() >= limits::kMaxJobsPerNode) return;
  const auto place =
      std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.job >= job; });
  if (place == open_.end() || place->job != job) open_.insert(place, {job, at});
}

void RunHistory::end(JobId job, TimePoint at) {
  const auto found =
      std::find_if(open_.begin(), open_.end(), [&](const Open& one) { return one.job == job; });
  if (found == open_.end()) return;
  if (at > found->start) ended_.push_back({job, found->start, at});
  open_.erase(found);
}

void RunHistory::feed(const NodeSample& sample) {
  for (const SwitchSample& one : sample.switches) {
    for (const AttemptId left : one.left) end(base::job_of(left), one.due + one.stopped);
    for (const AttemptId entered : one.entered) {
      begin(base::job_of(entered), one.due + one.done);
    }
  }
  const auto runs = [&](JobId job) {
    return std::any_of(sample.gangs.begin(), sample.gangs.end(), [&](const GangSample& gang) {
      return gang.runs && base::job_of(gang.attempt) == job;
    });
  };
  for (const GangSample& gang : sample.gangs) {
    if (gang.runs) begin(base::job_of(gang.attempt), sample.taken);
  }
  for (std::size_t i = 0; i < open_.size();) {
    const auto [job, start] = open_[i];
    if (runs(job)) {
      ++i;
      continue;
    }
    const auto last = last_task_.find(job);
    const bool is_told = last != last_task_.end() && last->second > start;
    end(job, is_told ? std::min(last->second, sample.taken) : sample.taken);
  }
  std::erase_if(last_task_, [&](const auto& one) { return one.second < sample.taken - kKept; });
  while (!ended_.empty() &&
         (*ended_.front().end < sample.taken - kKept || ended_.size() > kMostRuns)) {
    ended_.pop_front();
  }
}

void RunHistory::interrupt(TimePoint now) {
  while (!open_.empty()) end(open_.front().job, now);
}

std::vector<Run> RunHistory::between(TimePoint from, TimePoint to) const {
  std::vector<Run> runs;
  for (auto run = ended_.rbegin(); run != ended_.rend() && *run->end > from; ++run) {
    if (run->start < to) runs.push_back(*run);
  }
  std::reverse(runs.begin(), runs.end());
  for (const auto& [job, start] : open_) {
    if (start < to) runs.push_back({job, start, std::nullopt});
  }
  return runs;
}

}  // namespace score::monitor
