// The programs of one job: `scrun -n 2 a : -n 3 b`, or the lines of a --multi-prog file.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// What some ranks run. Ranks are numbered through: those of the first program come first.
struct ProgramOptions {
  std::uint32_t tasks = 0;             // 0: all of an only program's job
  std::string directory;               // empty: the job's
  std::string export_rule;             // NAME=value,... besides the job's environment
  std::vector<std::string> command{};  // the program and its arguments; not empty
  // NAME=value, besides those of the export rule.
  std::vector<std::string> variables{};

  friend bool operator==(const ProgramOptions&, const ProgramOptions&) = default;
};

// The words after scrun's own options: one program, or several with ":" between them, of which all
// but the first may begin with -n, -D and --export, or the same in mpiexec's words. tasks: of the
// first one. With several, one that names no number has one task. Errors: Malformed, naming what is
// wrong.
Result<std::vector<ProgramOptions>> split_programs(const std::vector<std::string>& words,
                                                   std::uint32_t tasks);

// Of the text of a --multi-prog file: lines "RANKS PROGRAM [ARGUMENT...]". RANKS is 3, 0-3, 0,4-5
// or
// *, which is all that no other line names; %t in an argument is the rank, %o its place among the
// line's ranks; # begins a comment. tasks: of the job; 0: one more than the highest rank.
// Errors: Malformed, naming the line or the rank that is missing.
Result<std::vector<ProgramOptions>> parse_multi_prog(std::string_view text, std::uint32_t tasks);

}  // namespace score::scout
