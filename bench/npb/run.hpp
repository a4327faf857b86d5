// What the programs over PM and over MPI have in common: their command line and what they print.
#pragma once

#include "bench/npb/communicator.hpp"

#include <optional>
#include <span>
#include <string>

namespace score::npb {

struct RunOptions {
  std::string kernel;
  char size = 'S';
  double seconds = 0;    // repeat the whole for that long; 0: once
  std::string counters;  // file in which every rank counts its progress; see examples/progress.h
};

// Nullopt, and the usage on standard error, if the arguments make no sense.
std::optional<RunOptions> parse_options(std::span<char*> arguments);

// Runs and verifies, prints a line from rank 0. Gives the exit code: 0 verified, 1 not, 2 such a
// kernel cannot be run by so many ranks. SIGTERM ends a repeated run in order.
int run_kernel(const RunOptions& options, Communicator& network);

}  // namespace score::npb
