#pragma once
// Judges running jobs anew when their nodes report or time has passed: idle jobs may leave the
// timetable, deadlocked ones are ended if their user asked for it.

#include "gang/lifecycle/ending.hpp"
#include "gang/state/tables.hpp"

namespace score::gang {

inline constexpr const char* kDeadlockReason =
    "deadlock: every task waits for a message and none can send one";

class IdleJobs {
 public:
  IdleJobs(Tables& tables, Ending& ending) : tables_(tables), ending_(ending) {}

  void report(Job& job, std::size_t member, const base::Activity& activity, Step& step);
  // A job that is not running, or has no turn, is left alone.
  void judge(Job& job, Step& step);

 private:
  Tables& tables_;
  Ending& ending_;
};

}  // namespace score::gang
