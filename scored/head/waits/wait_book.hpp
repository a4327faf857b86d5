#pragma once
// Which waiting jobs may go on to the queue, which can never, and why the others wait. Pure: events
// and `now` in, decisions out; jobs and times are values.
//
// A job can name only jobs with smaller numbers than its own, and what it waits for never changes,
// so no circle of jobs can wait for each other.

#include "scored/head/waits/conditions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

// What is known of a job that others wait for.
enum class Progress : std::uint8_t {
  Waiting,  // has never had tasks
  Started,
  Ok,      // ended, Completed
  NotOk,   // ended otherwise
  Unknown  // there was never such a job
};

struct WaitDecision {
  enum class What : std::uint8_t {
    Go,        // it may take its place in the queue
    Stays,     // it goes on waiting; its reasons have changed
    Never,     // it can never go, and its user wants it to end then
    TooLate,   // it has not started, and cannot end by its deadline any more
    Deadline,  // it has started, and its deadline is reached
  };

  JobId job;
  What what{};
  std::string why;  // of an end

  friend bool operator==(const WaitDecision&, const WaitDecision&) = default;
};

class WaitBook {
 public:
  struct NewJob {
    JobId id;
    UserId user;
    std::string name;
    Conditions conditions;
    Duration wall_limit{0};    // 0: none
    bool has_started = false;  // after a restart of the head: it needs its deadline alone
  };

  using ProgressOf = std::function<Progress(JobId)>;

  // Every job, ascending. True: it must wait, see reasons(). progress_of: of the jobs that it waits
  // for; jobs whose end the book was told count as it says.
  bool add(NewJob job, WallTime now, const ProgressOf& progress_of);
  void started(JobId job);
  // user, name: as they were added.
  void ended(JobId job, UserId user, const std::string& name, bool ok);

  // What has become of the jobs since the last call. Each decision is given once.
  [[nodiscard]] std::vector<WaitDecision> decide(WallTime now);

  // What it waits for, a line each; empty: for nothing in this book.
  [[nodiscard]] std::vector<std::string> reasons(JobId job) const;
  // When to call decide() at the latest, if nothing else happens.
  [[nodiscard]] std::optional<WallTime> next_time() const;

 private:
  using NameKey = std::pair<UserId, std::string>;

  struct Entry {
    NameKey name;
    Conditions conditions;
    Duration wall_limit{0};
    std::vector<Dependency> unmet;
    std::vector<Dependency> never;
    WallTime begin{};  // 0: it is past
    bool has_gone = false;
    bool has_started = false;
    std::vector<std::string> told;  // reasons that the caller knows
  };

  [[nodiscard]] bool is_first(JobId job, const Entry& entry) const;
  [[nodiscard]] bool is_free(JobId job, const Entry& entry) const;
  [[nodiscard]] static WallTime last_moment(const Entry& entry);
  void judge(Entry& entry, JobId about, Progress progress);
  void inform(JobId about, Progress progress);
  void note_time(JobId job, const Entry& entry);
  void decide_one(JobId job, Entry& entry, std::vector<WaitDecision>& decisions) const;
  [[nodiscard]] std::vector<std::string> reasons(JobId job, const Entry& entry) const;
  void drop(JobId job);

  std::map<JobId, Entry> entries_;            // with conditions, not ended
  std::map<JobId, std::set<JobId>> waiters_;  // of a job
  std::map<NameKey, std::set<JobId>> names_;  // all active jobs
  std::set<std::pair<WallTime, JobId>> times_;
  std::set<JobId> changed_;
};

}  // namespace score::head
