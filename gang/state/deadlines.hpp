#pragma once
// The deadlines of jobs that gang::Cluster is responsible for.

#include "base/model/deadlines.hpp"

#include <cstdint>

namespace score::gang {

enum class DeadlineKind : std::uint8_t {
  Launch,     // every node has prepared
  Begin,      // the tasks exist on every node
  Kill,       // nothing of an ending job is left
  Wall,       // limit of elapsed time
  Scheduled,  // limit of scheduled time
  Age,        // the job is no longer young
  Signal,     // the job must be checked for its signal before a limit
  Idle,       // the job must be judged again: idle, deadlocked
  Switches,   // the job no longer waits for a place within few switches
  Relaunch,   // the pause before a repeated launch is over
};

using Deadlines = base::Deadlines<DeadlineKind>;

}  // namespace score::gang
