#include "monitor/run_history.hpp"

#include "base/model.hpp"

#include <algorithm>
#include <set>

namespace score::monitor {

void RunHistory::end(JobId job, TimePoint at) {
  const auto found = open_.find(job);
  if (found == open_.end()) return;
  if (at > found->second) ended_.push_back({job, found->second, at});
  open_.erase(found);
}

void RunHistory::feed(const NodeSample& sample) {
  for (const SwitchSample& one : sample.switches) {
    for (const AttemptId left : one.left) end(base::job_of(left), one.due + one.stopped);
    for (const AttemptId entered : one.entered) {
      open_.try_emplace(base::job_of(entered), one.due + one.done);
    }
  }
  std::set<JobId> running;
  for (const GangSample& gang : sample.gangs) {
    if (gang.runs) running.insert(base::job_of(gang.attempt));
  }
  for (const JobId job : running) open_.try_emplace(job, sample.taken);
  for (auto next = open_.begin(); next != open_.end();) {
    const auto [job, start] = *next++;
    if (running.contains(job)) continue;
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
  while (!open_.empty()) end(open_.begin()->first, now);
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
