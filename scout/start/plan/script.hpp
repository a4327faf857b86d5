// Builds the shell script that a link runs on its host. The script finds the programs there or
// reads them from its standard input, and becomes the host_agent.
#pragma once

#include "base/result.hpp"

#include <string>

namespace score::scout {

enum class Push { Auto, Always, Never };

struct ScriptPlan {
  std::string programs;  // directory of the programs on this host, tried on that host first
  std::string version;   // required version of the programs
  Push push = Push::Auto;
  std::string directory = "/tmp";  // for pushed programs, in a private directory
};

// Returns a script for a POSIX shell without single quotes. Errors: Malformed for a path with
// characters other than letters, digits and "/._+-".
Result<std::string> bootstrap_script(const ScriptPlan& plan);

}  // namespace score::scout
