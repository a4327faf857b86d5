// Options of mpiexec and mpirun, of MPICH and of Open MPI, as scrun understands them. Most are
// words of several letters behind one dash, which getopt would read as a cluster: "-envall" as "-e
// nvall".
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
  std::vector<std::string> options;        // the same in scrun's words
  std::vector<std::string> variables;      // -env NAME VALUE: "NAME=VALUE", of this program
  std::vector<std::string> job_variables;  // -genv: of all programs
  std::string config_file;                 // -configfile
  std::size_t words = 1;                   // of the command line that it takes
};

// The option that `args` begin with; nothing if that is none of mpiexec's own, or one that scrun
// has too. Reads host files. Errors: Malformed, naming the option and what to use.
Result<std::optional<MpiexecOption>> read_mpiexec_option(std::span<const std::string> args);

// The words of a -configfile: one program on each line, "-n 2 a.out x"; a ':' parts them.
// Errors: Malformed.
Result<std::vector<std::string>> parse_config_file(std::string_view text);

// "--wall-time=Ns" for MPIEXEC_TIMEOUT=N in the environment; empty if `text` is null.
// Errors: Malformed.
Result<std::vector<std::string>> timeout_option(const char* text);

}  // namespace score::scout
