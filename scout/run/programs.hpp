// Splits the programs of one job: `scrun -n 2 a : -n 3 b`, or the lines of a --multi-prog file.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Describes one program of a job and its options. Ranks are numbered in the order of the programs.
struct ProgramOptions {
  std::uint32_t tasks = 0;             // 0: all tasks, if the job has one program
  std::string directory;               // empty: the job's directory
  std::string export_rule;             // NAME=value,... in addition to the job's environment
  std::vector<std::string> command{};  // the program and its arguments; not empty
  // NAME=value, in addition to the variables of the export rule.
  std::vector<std::string> variables{};

  friend bool operator==(const ProgramOptions&, const ProgramOptions&) = default;
};

// Splits the words after scrun's own options: one program, or several with ":" between them. All
// but the first may begin with -n, -D and --export, or with the same in mpiexec's words. `tasks` is
// the number of the first program. If there are several, a program without a number has one task.
// Errors: Malformed, which names the error.
Result<std::vector<ProgramOptions>> split_programs(const std::vector<std::string>& words,
                                                   std::uint32_t tasks);

// Parses the text of a --multi-prog file: lines "RANKS PROGRAM [ARGUMENT...]". RANKS is 3, 0-3,
// 0,4-5 or *, which selects all ranks that no other line names. In an argument, %t is the rank and
// %o its position among the line's ranks; # begins a comment. `tasks` is the job's number of tasks;
// 0 means one more than the highest rank. Errors: Malformed, which names the line or the missing
// rank.
Result<std::vector<ProgramOptions>> parse_multi_prog(std::string_view text, std::uint32_t tasks);

}  // namespace score::scout
