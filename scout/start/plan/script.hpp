// The shell script that a link runs on its host: it finds the programs there or takes them from its
// standard input, and becomes the keeper.
#pragma once

#include "base/result.hpp"

#include <string>

namespace score::scout {

enum class Push { Auto, Always, Never };

struct ScriptPlan {
  std::string programs;  // directory of the programs on this host, tried on that host first
  std::string version;   // that the programs must have
  Push push = Push::Auto;
  std::string directory = "/tmp";  // where pushed programs go, in a private directory
};

// POSIX shell without single quotes. Errors: Malformed for a path that has other characters than
// letters, digits and "/._+-".
Result<std::string> bootstrap_script(const ScriptPlan& plan);

}  // namespace score::scout
