#pragma once
// The shepherd is the reaper of everything its tasks leave behind (child subreaper): what
// double-forks becomes its child, and is found and killed here.

#include <span>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// Makes this process the reaper of its descendants.
void become_subreaper();

// Pids of all children, ended ones that were not reaped yet included.
std::vector<pid_t> children_of_this_process();

// SIGKILL to every child, and to the whole process group of each that is not our own. Gives the
// number of children. Call again until 0: the children of killed ones arrive one after the other.
// Those in `spared` are left alone and not counted.
std::size_t kill_children(std::span<const pid_t> spared = {});

// Reaps every child that has ended and drops its exit code.
void reap_children();

}  // namespace score::shepherd
