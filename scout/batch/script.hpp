// What a batch script asks for: its lines "#SCORE OPTIONS" and "#SBATCH OPTIONS" before the first
// command. The text is a user's, or anyone's that the user downloaded. Pure.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Options of one line, in words of scbatch.
struct ScriptLine {
  std::size_t number = 0;  // from 1
  std::vector<std::string> words;
  bool is_slurms = false;  // it is a line "#SBATCH"

  friend bool operator==(const ScriptLine&, const ScriptLine&) = default;
};

struct ScriptOptions {
  std::vector<ScriptLine> lines;
  std::vector<std::string> ignored;  // "line 3: ignoring #SBATCH --partition=debug"
};

// Errors: Malformed or TooLarge: no script (it does not begin with "#!", has NUL bytes or the line
// ends of DOS, is too long), or a line that cannot be read; the text names the line.
Result<ScriptOptions> read_script(std::string_view text);

}  // namespace score::scout
