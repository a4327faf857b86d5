// The directory, the environment (--export) and the files that a job's tasks find.
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

// "ALL": this process's; "NONE": PATH, HOME, USER, LOGNAME, SHELL, TERM and LANG only; a list of
// NAME (taken from here if it is set) and NAME=value: these only; "ALL,NAME=value,...": all, and
// these. unbuffered: coreutils' libstdbuf is preloaded, as stdbuf(1) does. Errors: Malformed.
Result<std::vector<std::string>> exported_environment(std::string_view rule, bool unbuffered);

// The same rule without ALL and NONE: only the variables that it names.
Result<std::vector<std::string>> named_variables(std::string_view rule);

}  // namespace score::scout
