#pragma once

// These are the exit codes of commands, daemons and jobs when the code is not the program's own.
// The codes 1 to 123 belong to the program, and 128 + N means that signal N ended it. env(1),
// timeout(1) and shells use the same numbers.

namespace score {
inline namespace base {

inline constexpr int kExitOk = 0;
inline constexpr int kExitLimit = 124;          // a time limit of the job
inline constexpr int kExitError = 125;          // an error of Scored or of its command line
inline constexpr int kExitCannotExecute = 126;  // the program exists but cannot be executed
inline constexpr int kExitNotFound = 127;       // no such program
inline constexpr int kExitInterrupted = 130;    // 128 + SIGINT

}  // namespace base
}  // namespace score
