// Reads the options of a batch script: its lines "#SCORE OPTIONS" and "#SBATCH OPTIONS" before the
// first command. The text comes from the user, who may have downloaded it, so it is not trusted.
// Pure.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Holds the options of one line in the form that scbatch accepts.
struct ScriptLine {
  std::size_t number = 0;  // from 1
  std::vector<std::string> words;
  bool is_slurms = false;  // true for a line "#SBATCH"

  friend bool operator==(const ScriptLine&, const ScriptLine&) = default;
};

struct ScriptOptions {
  std::vector<ScriptLine> lines;
  std::vector<std::string> ignored;  // "line 3: ignoring #SBATCH --mail-type=END"
};

// Errors: Malformed or TooLarge if the text is not a script (it does not begin with "#!", has NUL
// bytes or DOS line endings, or is too long), or if a line cannot be parsed; the text names the
// line.
Result<ScriptOptions> read_script(std::string_view text);

}  // namespace score::scout
