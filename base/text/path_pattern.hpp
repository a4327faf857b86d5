#pragma once
// Expands the job's numbers and names in the names of input and output files. It is pure.

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::inline base {

struct PatternValues {
  std::uint64_t job = 0;
  std::uint32_t rank = 0;
  std::string_view node;
  std::uint32_t node_index = 0;  // within the job
  std::string_view step;         // "": it is not a step
  std::string_view job_name;
  std::string_view user;
};

// Replaces %j (job), %J (job, or job.step), %s (step, 0 without one), %t (rank), %n (index of the
// node within the job), %N (name of the node), %u (user), %x (name of the job) and %% (a percent
// sign). The head replaces %A and %a in tasks of arrays; elsewhere they are the job and 0. A number
// before a letter that stands for a number pads it with zeros ("%4t", at most 10). A slash in a
// name becomes "_". Errors: Malformed (anything else after a %).
Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values);

// Checks the pattern. Errors: as expand_pattern().
Status check_pattern(std::string_view pattern);

// PatternScope says whether every rank or every node has a separate file. A malformed pattern has
// neither.
struct PatternScope {
  bool per_rank = false;
  bool per_node = false;
};

PatternScope scope_of(std::string_view pattern);

// Returns the directory that contains the file or directory: "." for a name without a slash, "/"
// for "/".
std::string parent_directory(std::string_view path);

}  // namespace score::inline base
