#include "monitor/meters/run_history.hpp"

#include "base/limits.hpp"
#include "base/model/model.hpp"

#include <algorithm>
#include <iterator>

namespace score::monitor {

namespace {

bool has(const std::vector<AttemptId>& attempts, JobId job) {
  return std::ranges::find(attempts, job, &base::job_of) != attempts.end();
}

}  // namespace

// Opens a run unless it is open. A report of more jobs than a node may have is false, so the rest
// is ignored.
void RunHistory::Track::begin(JobId job, TimePoint at) {
  if (open_.size() >= limits::kMaxJobsPerNode) return;
  const auto place = std::ranges::find_if(open_, [&](const JobRun& run) { return run.job >= job; });
  if (place == open_.end() || place->job != job) open_.insert(place, {job, at, std::nullopt});
}

void RunHistory::Track::end(JobId job, TimePoint at) {
  const auto found = std::ranges::find(open_, job, &JobRun::job);
  if (found == open_.end()) return;
  if (at > found->start) ended_.push_back({job, found->start, at});
  open_.erase(found);
}

void RunHistory::Track::end_all(TimePoint at) {
  while (!open_.empty()) end(open_.front().job, at);
}

void RunHistory::Track::forget(TimePoint before) {
  while (!ended_.empty() && (*ended_.front().end < before || ended_.size() > kMostRuns)) {
    ended_.pop_front();
  }
}

std::vector<JobRun> RunHistory::Track::between(TimePoint from, TimePoint to) const {
  std::vector<JobRun> runs;
  for (auto run = ended_.rbegin(); run != ended_.rend() && *run->end > from; ++run) {
    if (run->start < to) runs.push_back(*run);
  }
  std::reverse(runs.begin(), runs.end());
  std::ranges::copy_if(open_, std::back_inserter(runs),
                       [&](const JobRun& run) { return run.start < to; });
  return runs;
}

// Returns the end of a run that the sample no longer has.
TimePoint RunHistory::end_of(const JobRun& run, TimePoint taken) const {
  const auto last = last_task_.find(run.job);
  const bool is_told = last != last_task_.end() && last->second > run.start;
  return is_told ? std::min(last->second, taken) : taken;
}

void RunHistory::feed(const NodeSample& sample) {
  for (const SwitchSample& one : sample.switches) {
    for (const AttemptId left : one.left) turns_.end(base::job_of(left), one.due + one.stopped);
    for (const AttemptId entered : one.entered) {
      turns_.begin(base::job_of(entered), one.due + one.done);
    }
    for (const JobRun& run : fills_.open()) {
      if (!has(one.filling, run.job)) fills_.end(run.job, one.due + one.stopped);
    }
    for (const AttemptId fills : one.filling) fills_.begin(base::job_of(fills), one.due + one.done);
  }
  std::vector<AttemptId> run, fill;
  for (const GangSample& gang : sample.gangs) {
    if (gang.runs) run.push_back(gang.attempt);
    if (gang.fills) fill.push_back(gang.attempt);
  }
  for (const AttemptId attempt : run) turns_.begin(base::job_of(attempt), sample.taken);
  for (const AttemptId attempt : fill) fills_.begin(base::job_of(attempt), sample.taken);
  for (const JobRun& one : turns_.open()) {
    if (!has(run, one.job)) turns_.end(one.job, end_of(one, sample.taken));
  }
  for (const JobRun& one : fills_.open()) {
    if (!has(fill, one.job)) fills_.end(one.job, end_of(one, sample.taken));
  }
  std::erase_if(last_task_, [&](const auto& one) { return one.second < sample.taken - kKept; });
  turns_.forget(sample.taken - kKept);
  fills_.forget(sample.taken - kKept);
}

void RunHistory::interrupt(TimePoint now) {
  turns_.end_all(now);
  fills_.end_all(now);
}

}  // namespace score::monitor
