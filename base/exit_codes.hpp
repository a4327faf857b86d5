#pragma once

// What commands, daemons and jobs exit with when the code is not the program's own: 1 to 123 are
// the program's, 128 + N means that signal N ended it. The same numbers as of env(1), timeout(1)
// and shells.

namespace score {
inline namespace base {

inline constexpr int kExitOk = 0;
inline constexpr int kExitLimit = 124;          // a time limit of the job
inline constexpr int kExitError = 125;          // an error of Scored or of the way it was called
inline constexpr int kExitCannotExecute = 126;  // the program is there but cannot be executed
inline constexpr int kExitNotFound = 127;       // no such program
inline constexpr int kExitInterrupted = 130;    // 128 + SIGINT

}  // namespace base
}  // namespace score
