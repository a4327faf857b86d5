#pragma once
// IdleJobs decides again whether running jobs are idle when their nodes report or time has passed.
// Idle jobs may leave the timetable; deadlocked ones are ended if their user requested it.

#include "gang/lifecycle/ending.hpp"
#include "gang/state/tables.hpp"

#include <string>

namespace score::gang {

// Returns a text with the ranks of a deadlocked job and what each waits for.
[[nodiscard]] std::string deadlock_reason(const Job& job);

class IdleJobs {
 public:
  IdleJobs(Tables& tables, Ending& ending) : tables_(tables), ending_(ending) {}

  void report(Job& job, std::size_t member, const base::Activity& activity, Step& step);
  // Takes the answer to the job's suspicion; see Idleness::confirm().
  void confirm(Job& job, std::uint32_t suspicion, bool is_deadlock, Step& step);
  // Updates the job's activity. A job that is not running, or has no turn, is left alone.
  void judge(Job& job, Step& step);

 private:
  [[nodiscard]] bool is_heard(const Job& job) const;

  Tables& tables_;
  Ending& ending_;
};

}  // namespace score::gang
