#pragma once
// The shepherd is the reaper of everything that its tasks leave behind (child subreaper). A process
// that double-forks becomes its child, and is found and killed here.

#include <span>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// Makes this process the reaper of its descendants.
void become_subreaper();

// Returns the pids of all children, including ended ones that were not reaped yet.
std::vector<pid_t> children_of_this_process();

// Sends SIGKILL to every child, and to the whole process group of each unless it is our own.
// Returns the number of children. Call it again until it returns 0, because the children of killed
// processes arrive one after the other. Children in `spared` are not killed and not counted.
std::size_t kill_children(std::span<const pid_t> spared = {});

// Reaps every child that has ended and drops its exit code.
void reap_children();

}  // namespace score::shepherd
