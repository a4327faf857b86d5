#pragma once
// DependencyTracker decides which waiting jobs may join the queue, which never can, and why the
// others wait. The class is pure: it takes events and `now`, and returns decisions.
//
// A job can name only jobs with smaller ids than its own, so no cycle of jobs can wait for each
// other.

#include "scored/head/jobs/conditions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

// Progress is what is known of a job that other jobs wait for.
enum class Progress : std::uint8_t {
  Waiting,  // it never had tasks
  Started,
  Ok,      // ended as Completed
  NotOk,   // ended otherwise
  Unknown  // no such job ever existed
};

// Standing is the progress of such a job, and when its tasks started; 0: unknown, or not yet.
struct Standing {
  // NOLINTNEXTLINE(google-explicit-constructor): most callers know only the progress
  Standing(Progress known, WallTime at = {}) : progress(known), started(at) {}

  Progress progress{};
  WallTime started{};
};

struct WaitDecision {
  enum class What : std::uint8_t {
    Go,        // the job may join the queue
    Stays,     // the job keeps waiting; its reasons have changed
    Never,     // the job can never start, and its user wants it to end then
    TooLate,   // the job has not started, and cannot end by its deadline any more
    Deadline,  // the job has started, and its deadline is reached
  };

  JobId job;
  What what{};
  std::string why;  // reason of an end

  friend bool operator==(const WaitDecision&, const WaitDecision&) = default;
};

class DependencyTracker {
 public:
  struct NewJob {
    JobId id;
    UserId user;
    std::string name;
    Conditions conditions;
    Duration wall_limit{0};    // 0: none
    bool has_started = false;  // after a restart of the head: only its deadline matters
  };

  using ProgressOf = std::function<Standing(JobId)>;

  // Adds a job; every job must be added, in ascending order. Returns true if the job must wait; see
  // reasons(). `progress_of` answers for the jobs that it waits for, including those whose end was
  // already reported here.
  bool add(NewJob job, WallTime now, const ProgressOf& progress_of);
  // Replaces the conditions and the name of a job, which was `old_name`; works like add().
  bool change(NewJob job, const std::string& old_name, WallTime now, const ProgressOf& progress_of);
  void started(JobId job, WallTime now);
  // `user` and `name` must be those that were given to add().
  void ended(JobId job, UserId user, const std::string& name, bool ok);

  // Returns the decisions that became due since the last call; each is returned once.
  [[nodiscard]] std::vector<WaitDecision> decide(WallTime now);

  // Returns what the job waits for, one line each; empty if it waits for nothing in this tracker.
  [[nodiscard]] std::vector<std::string> reasons(JobId job) const;
  // Returns the time at which decide() must be called, if nothing else happens before.
  [[nodiscard]] std::optional<WallTime> next_time() const;

 private:
  using NameKey = std::pair<UserId, std::string>;

  struct Entry {
    NameKey name;
    Conditions conditions;
    Duration wall_limit{0};
    std::vector<Dependency> unmet;
    std::vector<Dependency> never;
    WallTime begin{};  // 0: it has passed
    bool has_gone = false;
    bool has_started = false;
    std::vector<std::string> told;  // reasons that the caller knows
  };

  [[nodiscard]] bool is_first(JobId job, const Entry& entry) const;
  [[nodiscard]] bool is_free(JobId job, const Entry& entry) const;
  [[nodiscard]] static WallTime last_moment(const Entry& entry);
  void judge(Entry& entry, JobId about, const Standing& standing);
  [[nodiscard]] static bool can_never_start(const Entry& entry);
  void inform(JobId about, const Standing& standing);
  void note_time(JobId job, const Entry& entry);
  void decide_one(JobId job, Entry& entry, std::vector<WaitDecision>& decisions) const;
  [[nodiscard]] std::vector<std::string> reasons(JobId job, const Entry& entry) const;
  void drop(JobId job);
  void leave_name(JobId job, const NameKey& name);

  std::map<JobId, Entry> entries_;            // active jobs with conditions
  std::map<JobId, std::set<JobId>> waiters_;  // by the job that they wait for
  std::map<NameKey, std::set<JobId>> names_;  // all active jobs
  std::set<std::pair<WallTime, JobId>> times_;
  std::set<JobId> changed_;
};

}  // namespace score::head
