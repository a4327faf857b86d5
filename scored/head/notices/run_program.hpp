#pragma once
// Runs a program with an input and a time limit. It blocks, so call it on a separate thread. The
// process must ignore SIGPIPE, because a program may end without reading its input.

#include "base/result.hpp"
#include "base/time.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::head {

struct ProgramRun {
  std::string path;                      // absolute
  std::vector<std::string> arguments{};  // after the program's name
  std::string input;                     // of its standard input
  Duration timeout{30s};
};

// Returns success if the program exits with 0 in time, and sets `exit_code` if it exits by itself.
// Standard output is discarded; the last line of standard error is in the error. A program that is
// too slow is killed together with its process group. Errors: Timeout, WrongState (it ended
// otherwise), errno codes (it could not be started).
[[nodiscard]] Status run_program(const ProgramRun& run, int& exit_code);

// Returns false for the exit codes of sysexits.h that a second try would give again: bad usage,
// data, address, permission or configuration.
[[nodiscard]] bool is_worth_a_retry(int exit_code);

}  // namespace score::head
