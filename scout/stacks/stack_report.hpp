#pragma once
// Shows the stacks of a job as text and as JSON. Names in them come from users' programs.

#include "proto/stacks.pb.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace score::scout {

// A StackGroup has the ranks that are at one place of the program. A stack counts up to its first
// MPI function, because in the library ranks that do the same are in many places.
struct StackGroup {
  std::set<std::uint32_t> ranks;
  std::string place;  // "compute (solver.c:31) < main (solver.c:50)"
};

// Returns the groups, the one with the fewest ranks first.
std::vector<StackGroup> groups_of(const wire::StackTree& tree);

// Returns lines such as "ranks 0-2 wait in MPI_Recv from rank 3, tag 7".
std::vector<std::string> state_lines(const wire::Stacks& stacks);

// `job` is the word by which the user named it.
std::string stacks_text(const wire::Stacks& stacks, const std::string& job);
std::string stacks_json(const wire::Stacks& stacks, std::uint64_t job);

}  // namespace score::scout
