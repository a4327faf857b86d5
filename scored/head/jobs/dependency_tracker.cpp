// A job that must wait has an entry until it ends, and so has a job with a deadline. An event of
// another job, or a time that is reached, marks the entries that it affects; decide() looks only at
// those.
#include "scored/head/jobs/dependency_tracker.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kReasonsShown = 8;

bool has_ended(Progress progress) {
  return progress == Progress::Ok || progress == Progress::NotOk;
}

enum class Met : std::uint8_t { NotYet, Yes, Never };

Met judge_one(After kind, Progress progress) {
  switch (kind) {
    case After::Started:
      return progress == Progress::Waiting ? Met::NotYet : Met::Yes;
    case After::Ended:
      return has_ended(progress) ? Met::Yes : Met::NotYet;
    case After::Ok:
      if (!has_ended(progress)) return Met::NotYet;
      return progress == Progress::Ok ? Met::Yes : Met::Never;
    case After::NotOk:
      if (!has_ended(progress)) return Met::NotYet;
      return progress == Progress::NotOk ? Met::Yes : Met::Never;
  }
  return Met::NotYet;
}

std::string waits_for(const Dependency& dependency) {
  constexpr std::array<std::string_view, 4> kEvents = {"start", "end", "succeed", "fail"};
  return fmt::format("waits for job {} to {} ({})", dependency.job,
                     kEvents.at(static_cast<std::size_t>(dependency.kind)), name_of(dependency));
}

std::string can_never(const Dependency& dependency) {
  return fmt::format("can never start: job {} {} ({})", dependency.job,
                     dependency.kind == After::Ok ? "did not succeed" : "succeeded",
                     name_of(dependency));
}

}  // namespace

bool DependencyTracker::add(NewJob job, WallTime now, const ProgressOf& progress_of) {
  const NameKey key(job.user, job.name);
  names_[key].insert(job.id);
  if (job.conditions.empty()) return false;
  Entry& entry = entries_[job.id];
  entry.name = key;
  entry.conditions = std::move(job.conditions);
  entry.wall_limit = job.wall_limit;
  entry.has_started = job.has_started;
  entry.begin = entry.conditions.begin > now ? entry.conditions.begin : WallTime();
  if (!job.has_started) {
    entry.unmet = entry.conditions.after;
    for (const Dependency& dependency : entry.conditions.after) {
      waiters_[dependency.job].insert(job.id);
    }
    for (const Dependency& dependency : entry.conditions.after) {
      judge(entry, dependency.job, progress_of(dependency.job));
    }
  }
  if (entry.begin <= now) entry.begin = WallTime();
  entry.has_gone = job.has_started || is_free(job.id, entry);
  note_time(job.id, entry);
  entry.told = reasons(job.id, entry);
  changed_.insert(job.id);
  return !entry.has_gone;
}

bool DependencyTracker::change(NewJob job, const std::string& old_name, WallTime now,
                               const ProgressOf& progress_of) {
  drop(job.id);
  leave_name(job.id, {job.user, old_name});
  return add(std::move(job), now, progress_of);
}

// A delay after a start becomes a time before which the job does not begin.
void DependencyTracker::judge(Entry& entry, JobId about, const Standing& standing) {
  bool is_any_met = false;
  std::erase_if(entry.unmet, [&](const Dependency& dependency) {
    if (dependency.job != about) return false;
    const Met met = judge_one(dependency.kind, standing.progress);
    is_any_met |= met == Met::Yes;
    if (met == Met::Yes && dependency.delay > Duration{0})
      entry.begin = std::max(entry.begin, standing.started + dependency.delay);
    if (met == Met::Never) entry.never.push_back(dependency);
    return met != Met::NotYet;
  });
  if (entry.conditions.any && is_any_met) {
    entry.unmet.clear();
    entry.never.clear();
  }
}

bool DependencyTracker::can_never_start(const Entry& entry) {
  return !entry.never.empty() && (!entry.conditions.any || entry.unmet.empty());
}

void DependencyTracker::inform(JobId about, const Standing& standing) {
  const auto found = waiters_.find(about);
  if (found == waiters_.end()) return;
  for (const JobId waiter : found->second) {
    Entry& entry = entries_.at(waiter);
    judge(entry, about, standing);
    note_time(waiter, entry);
    changed_.insert(waiter);
  }
  if (has_ended(standing.progress)) waiters_.erase(found);
}

void DependencyTracker::started(JobId job, WallTime now) {
  inform(job, {Progress::Started, now});
  const auto found = entries_.find(job);
  if (found == entries_.end()) return;
  found->second.has_gone = found->second.has_started = true;
  note_time(job, found->second);
}

void DependencyTracker::ended(JobId job, UserId user, const std::string& name, bool ok) {
  drop(job);
  inform(job, ok ? Progress::Ok : Progress::NotOk);
  leave_name(job, {user, name});
}

void DependencyTracker::leave_name(JobId job, const NameKey& name) {
  const auto named = names_.find(name);
  if (named == names_.end()) return;
  named->second.erase(job);
  if (named->second.empty()) {
    names_.erase(named);
  } else {
    changed_.insert(*named->second.begin());  // it may be a singleton that is now the first
  }
}

void DependencyTracker::drop(JobId job) {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return;
  for (const Dependency& dependency : found->second.conditions.after) {
    const auto waited = waiters_.find(dependency.job);
    if (waited == waiters_.end()) continue;
    waited->second.erase(job);
    if (waited->second.empty()) waiters_.erase(waited);
  }
  const Conditions& conditions = found->second.conditions;
  for (const WallTime time : {conditions.begin, found->second.begin, conditions.deadline,
                              conditions.deadline - found->second.wall_limit}) {
    times_.erase({time, job});
  }
  changed_.erase(job);
  entries_.erase(found);
}

bool DependencyTracker::is_first(JobId job, const Entry& entry) const {
  const auto named = names_.find(entry.name);
  return named == names_.end() || *named->second.begin() >= job;
}

bool DependencyTracker::is_free(JobId job, const Entry& entry) const {
  return entry.unmet.empty() && entry.never.empty() && entry.begin == WallTime() &&
         (!entry.conditions.singleton || is_first(job, entry));
}

// Returns the last moment at which the job can start, or at which a started job must end.
WallTime DependencyTracker::last_moment(const Entry& entry) {
  return entry.conditions.deadline - (entry.has_started ? Duration(0) : entry.wall_limit);
}

void DependencyTracker::note_time(JobId job, const Entry& entry) {
  if (entry.begin != WallTime()) times_.emplace(entry.begin, job);
  if (entry.conditions.deadline != WallTime()) times_.emplace(last_moment(entry), job);
}

std::optional<WallTime> DependencyTracker::next_time() const {
  if (times_.empty()) return std::nullopt;
  return times_.begin()->first;
}

std::vector<WaitDecision> DependencyTracker::decide(WallTime now) {
  while (!times_.empty() && times_.begin()->first <= now) {
    const JobId job = times_.begin()->second;
    times_.erase(times_.begin());
    const auto found = entries_.find(job);
    if (found == entries_.end()) continue;
    if (found->second.begin <= now) found->second.begin = WallTime();
    changed_.insert(job);
  }
  std::vector<WaitDecision> decisions;
  for (const JobId job : std::exchange(changed_, {})) {
    const auto found = entries_.find(job);
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    const bool has_deadline = entry.conditions.deadline != WallTime();
    if (has_deadline && last_moment(entry) <= now) {
      entry.has_gone = true;
      entry.conditions.deadline = WallTime();
      decisions.push_back(
          {job, entry.has_started ? WaitDecision::What::Deadline : WaitDecision::What::TooLate,
           entry.has_started ? "its deadline is reached (--deadline)"
                             : "it cannot end by its deadline any more (--deadline)"});
    } else {
      decide_one(job, entry, decisions);
    }
  }
  return decisions;
}

void DependencyTracker::decide_one(JobId job, Entry& entry,
                                   std::vector<WaitDecision>& decisions) const {
  if (entry.has_gone) return;
  if (can_never_start(entry) && entry.conditions.end_if_never) {
    entry.has_gone = true;
    decisions.push_back({job, WaitDecision::What::Never, can_never(entry.never.front())});
  } else if (is_free(job, entry)) {
    entry.has_gone = true;
    decisions.push_back({job, WaitDecision::What::Go, {}});
  } else if (auto now = reasons(job, entry); now != entry.told) {
    entry.told = std::move(now);
    decisions.push_back({job, WaitDecision::What::Stays, {}});
  }
}

std::vector<std::string> DependencyTracker::reasons(JobId job) const {
  const auto found = entries_.find(job);
  if (found == entries_.end()) return {};
  return reasons(job, found->second);
}

std::vector<std::string> DependencyTracker::reasons(JobId job, const Entry& entry) const {
  std::vector<std::string> reasons;
  if (entry.has_gone) return reasons;
  const auto add = [&reasons](const std::vector<Dependency>& list, auto&& text) {
    for (std::size_t i = 0; i < std::min(list.size(), kReasonsShown); ++i) {
      reasons.push_back(text(list[i]));
    }
    if (list.size() > kReasonsShown) {
      reasons.push_back(fmt::format("... and {} more jobs", list.size() - kReasonsShown));
    }
  };
  if (can_never_start(entry)) add(entry.never, can_never);
  add(entry.unmet, waits_for);
  if (entry.conditions.any && entry.unmet.size() > 1)
    reasons.emplace_back("one of these is enough");
  if (entry.conditions.singleton && !is_first(job, entry)) {
    reasons.emplace_back("waits for the earlier jobs of its name to end (singleton)");
  }
  if (entry.begin != WallTime()) {
    reasons.push_back(
        fmt::format("starts at {} at the earliest ({})", format_wall(entry.begin),
                    entry.begin == entry.conditions.begin ? "--begin" : "--after with a delay"));
  }
  return reasons;
}

}  // namespace score::head
