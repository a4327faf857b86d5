// Translates options of mpiexec and mpirun, of MPICH and of Open MPI, to those of scrun. Most of
// them are words of several letters after one dash, which getopt would read as a cluster: "-envall"
// as "-e nvall".
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct MpiexecOption {
  std::vector<std::string> options;        // the same as options of scrun
  std::vector<std::string> variables;      // -env NAME VALUE: "NAME=VALUE", of this program
  std::vector<std::string> job_variables;  // -genv: for all programs
  std::string config_file;                 // -configfile
  std::size_t words = 1;                   // number of command line words that it takes
};

// Reads the option at the start of `args`. Returns nullopt if it is not an option of mpiexec, or is
// one that scrun has too. Reads host files. Errors: Malformed, which names the option and what to
// use.
Result<std::optional<MpiexecOption>> read_mpiexec_option(std::span<const std::string> args);

// Returns the words of a -configfile. It has one program per line, "-n 2 a.out x"; in the result
// ':' separates them. Errors: Malformed.
Result<std::vector<std::string>> parse_config_file(std::string_view text);

// Returns "--wall-time=Ns" for MPIEXEC_TIMEOUT=N in the environment; empty if `text` is null.
// Errors: Malformed.
Result<std::vector<std::string>> timeout_option(const char* text);

}  // namespace score::scout
