// The steps of a child of the launcher until exec, which scored-checkpoint takes too.
#pragma once

#include "scored/privileged/launcher/identity.hpp"
#include "scored/privileged/launcher/protocol.hpp"

#include <climits>

#include <sys/types.h>

namespace score::launcher {

// The numbers below it are those that children use explicitly. Every descriptor of the launcher
// except 0, 1 and 2 is at least this.
inline constexpr int kFirstFd = 10;

struct Launch {
  StartRequest request;
  int places[kPlaces];   // -1: none
  const char* shepherd;  // the program
};

// scored-checkpoint gets the pipe of notes here, and behind it the descriptors of the request. No
// descriptor of the launcher has such a number: it has two per shepherd, some of its own, and those
// of the request.
inline constexpr int kPassedFd = 600;
static_assert(kPassedFd > kFirstFd + 2 * static_cast<int>(kMaxShepherds) + 2 * kPlaces + 16);

struct Child {
  const Launch& launch;
  int notes = -1;
  UserIdentity identity{};
  // Further words for the shepherd; null: none.
  const char* outside = nullptr;
  const char* restores = nullptr;
};

// Reports that a step failed, with errno, and ends the process.
[[noreturn]] void give_up(const Child& child, const char* step);
void must(bool done, const Child& child, const char* step);
// Forks a process into one of the attempt's cgroups, if it has any.
pid_t fork_into(const Child& child, int place, int* pidfd);
// Resets all state that is inherited from the launcher, except its log.
void reset_state(const Child& child);
// Places the descriptors so that only 0, 1, 2 and these survive exec; -1: none.
void place_descriptors(Child& child, int listener, int pair, int helpers);
// Becomes the user and then the shepherd's program.
[[noreturn]] void execute(const Child& child, const char* role);
// Writes the path of a program in the directory of the shepherd.
void place_program(const Child& child, const char* program, char (&path)[PATH_MAX]);
// Runs such a program: an exec as root has the capabilities that the launcher has given up. Before
// B is forked it is the only child.
void assist(const Child& child, const char* program, const char* word);

struct Program {
  void (*run)(const Child& child, const char* role);
  const char* role;
};

// Forks B or C into its cgroup. `end` becomes A's end of their socket.
pid_t fork_spawner(Child& child, int place, const Program& program, int& end);

}  // namespace score::launcher
