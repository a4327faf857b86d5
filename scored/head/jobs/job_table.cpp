#include "scored/head/jobs/job_table.hpp"

#include "base/shares.hpp"

#include <algorithm>

namespace score::head {
namespace {

constexpr Duration kShownAfterEnd = 10s;
constexpr std::size_t kMostShownAfterEnd = 100;
// This limit is per node, so that no sum over nodes overflows.
constexpr Duration kMostFilled = 24h * 365;

}  // namespace

Job* JobTable::find(JobId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

const Job* JobTable::find(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::vector<JobId> JobTable::active_ids() const {
  std::vector<JobId> ids;
  for (const auto& [id, job] : jobs_) {
    if (!job.ended) ids.push_back(id);
  }
  return ids;
}

JobTable::Usage JobTable::usage_of(UserId user) const {
  const auto found = usage_of_.find(user);
  return found == usage_of_.end() ? Usage() : found->second;
}

Status JobTable::admits_step(UserId user) const {
  const std::size_t steps = usage_of(user).steps;
  if (steps < shares::kSteps.per_user) return {};
  return fail(Errc::Denied, "{} of your steps are queued or running: users may have {} at most",
              steps, shares::kSteps.per_user);
}

void JobTable::count_in(const JobInfo& info) {
  for (Usage* usage : {&usage_, &usage_of_[info.user]}) {
    ++(info.step_of == JobId(0) ? usage->jobs : usage->steps);
    usage->specs += info.spec_bytes;
  }
  if (info.step_of != JobId(0)) return;
  ++jobs_of_[{info.account, info.user}];
  ++jobs_in_[{info.partition, info.user}];
}

void JobTable::count_out(const JobInfo& info) {
  const auto found = usage_of_.find(info.user);
  if (found == usage_of_.end()) return;
  for (Usage* usage : {&usage_, &found->second}) {
    --(info.step_of == JobId(0) ? usage->jobs : usage->steps);
    usage->specs -= info.spec_bytes;
  }
  if (found->second == Usage()) usage_of_.erase(found);
  if (info.step_of != JobId(0)) return;
  const auto drop = [&info](Counts& counts, const SharedText& name) {
    const auto jobs = counts.find({name, info.user});
    if (jobs != counts.end() && --jobs->second == 0) counts.erase(jobs);
  };
  drop(jobs_of_, info.account);
  drop(jobs_in_, info.partition);
}

std::size_t JobTable::jobs_in(const std::string& partition, UserId user) const {
  const auto found = jobs_in_.find({partition, user});
  return found == jobs_in_.end() ? 0 : found->second;
}

std::size_t JobTable::jobs_of(const std::string& account) const {
  std::size_t sum = 0;
  for (auto it = jobs_of_.lower_bound({account, UserId(0)});
       it != jobs_of_.end() && it->first.first == account; ++it) {
    sum += it->second;
  }
  return sum;
}

std::size_t JobTable::jobs_of(const std::string& account, UserId user) const {
  const auto found = jobs_of_.find({account, user});
  return found == jobs_of_.end() ? 0 : found->second;
}

Job& JobTable::add(JobInfo info) {
  Job& job = jobs_[info.id];
  job.info = std::move(info);
  for (SharedText JobInfo::*text :
       {&JobInfo::command, &JobInfo::directory, &JobInfo::resources, &JobInfo::conditions,
        &JobInfo::account, &JobInfo::notices, &JobInfo::partition}) {
    job.info.*text = texts_.share(job.info.*text);
  }
  ++active_;
  if (Job* allocation = find(job.info.step_of)) {
    Steps& steps = allocation->steps.edit();
    steps.active.insert(job.info.id);
    steps.next = std::max(steps.next, job.info.step + 1);
  }
  return job;
}

void JobTable::end(Job& job, wire::JobStatus status, TimePoint now) {
  if (Job* allocation = find(job.info.step_of)) note_step_end(*allocation, status);
  job.ended = std::make_unique<const wire::JobStatus>(status);
  --active_;
  count_out(job.info);
  recently_ended_.emplace_back(now, std::move(status));
  while (recently_ended_.size() > kMostShownAfterEnd ||
         now - recently_ended_.front().first > kShownAfterEnd) {
    recently_ended_.pop_front();
  }
}

std::vector<const wire::JobStatus*> JobTable::recently_ended(TimePoint now) const {
  std::vector<const wire::JobStatus*> shown;
  for (const auto& [at, status] : recently_ended_) {
    if (now - at < kShownAfterEnd) shown.push_back(&status);
  }
  return shown;
}

void JobTable::note_filled(AttemptId attempt, NodeId node, Duration filled) {
  if (filled == Duration{0}) return;
  Job* job = find(job_of(attempt));
  if (job == nullptr || job->progress.placement.attempt != attempt) return;
  if (std::ranges::find(job->nodes, node) == job->nodes.end()) return;
  Duration& known = job->filled.edit()[node];
  known = std::clamp<Duration>(filled, known, kMostFilled);  // samples may overtake each other
}

void JobTable::note_use(AttemptId attempt, NodeId node, WallTime at, const monitor::NodeUse& use) {
  Job* job = find(job_of(attempt));
  if (job == nullptr || job->ended || job->progress.placement.attempt != attempt) return;
  if (std::ranges::find(job->nodes, node) == job->nodes.end()) return;
  job->profile.edit().add(node, job->info.id, at, use);
  Job* whole = find(job->info.step_of);
  if (whole != nullptr && !whole->ended) whole->profile.edit().add(node, job->info.id, at, use);
}

std::span<const NodeId> JobTable::nodes_of(AttemptId attempt) const {
  const Job* job = find(job_of(attempt));
  if (job == nullptr || job->progress.placement.attempt != attempt) return {};
  return job->nodes;
}

}  // namespace score::head
