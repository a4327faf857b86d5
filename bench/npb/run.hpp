// Contains the common part of the programs over PM and over MPI: their command line and their
// output.
#pragma once

#include "bench/npb/communicator.hpp"

#include <optional>
#include <span>
#include <string>

namespace score::npb {

struct RunOptions {
  std::string kernel;
  char size = 'S';
  double seconds = 0;    // repeat for that long; 0: run once
  std::string counters;  // file in which every rank counts its progress; see examples/progress.h
};

// Returns nullopt, and prints the usage on standard error, if the arguments are invalid.
std::optional<RunOptions> parse_options(std::span<char*> arguments);

// Runs and verifies a kernel, and prints a line from rank 0. Returns the exit code: 0 verified, 1
// not verified, 125 if the kernel cannot run on so many ranks. SIGTERM ends a repeated run after
// the current repetition.
int run_kernel(const RunOptions& options, Communicator& network);

}  // namespace score::npb
