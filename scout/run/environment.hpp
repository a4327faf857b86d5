// Determines the directory, the environment (--export) and the files of a job's tasks.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

struct PlaceOptions {
  std::string directory;
  std::string export_rule = "ALL";
  std::string input;
  std::string output;
  std::string error;
  std::string open_mode = "truncate";
  bool slurm_env = false;
};

void add_place_options(CLI::App& app, PlaceOptions& options);

// Returns the environment that the rule selects. "ALL" is this process's environment; "NONE" is
// PATH, HOME, USER, LOGNAME, SHELL, TERM and LANG only. A list of NAME (its value here, if it is
// set) and NAME=value selects only these; "ALL,NAME=value,..." adds them to all. With `unbuffered`,
// coreutils' libstdbuf is preloaded, as stdbuf(1) does. Errors: Malformed.
Result<std::vector<std::string>> exported_environment(std::string_view rule, bool unbuffered);

// Applies the same rule without ALL and NONE: returns only the variables that it names.
Result<std::vector<std::string>> named_variables(std::string_view rule);

}  // namespace score::scout
