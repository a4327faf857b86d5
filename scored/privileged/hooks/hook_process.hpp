// Runs one hook: with the environment, input and time that it was given and nothing else, and
// leaves no process of it.
#pragma once

#include "base/time.hpp"

#include <string>
#include <vector>

namespace score::hooks {

struct HookRun {
  std::string path;                      // checked by the caller
  std::vector<std::string> environment;  // complete
  Duration timeout{0};
  int peer = -1;     // the hook is killed when this socket's other end is closed
  int input = -1;    // standard input of the hook; -1: /dev/null
  int answers = -1;  // file for the standard output; -1: it counts as messages
};

// A hook may print this much. One that prints more is killed, because it would use the processor
// for nothing.
inline constexpr std::size_t kMostOutput = 16UL * 1024 * 1024;

// Returns an empty text if the hook has ended with status 0, else one line that says why not, which
// is the last line of its messages if it ended by itself.
[[nodiscard]] std::string run_hook(const HookRun& run);

}  // namespace score::hooks
