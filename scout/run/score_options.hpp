// What has to happen to a command line before CLI11 sees it: SCore's own option form
// (`-nodes=8x2,scored=comp7`, and the same in SCORE_OPTIONS) and options of mpiexec become ours,
// and the program to run is parted from the options before it.
#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

struct SplitCommand {
  std::vector<std::string> options;  // for CLI11
  std::vector<std::string> command;  // program and its arguments, untouched
  // What options of mpiexec set: NAME=value, for the program that follows and for the job's.
  std::vector<std::string> variables{};
  std::vector<std::string> job_variables{};
  std::string config_file{};
  std::map<std::string, std::string> typed{};  // our names of options, and as the user typed them
};

// True for `-` followed by two or more small letters and `=`: no getopt cluster means that.
bool is_score_group(std::string_view word);

// True for what begins with one of SCore's own keys and an equal sign, "hosts=8x2": no program is
// called so (`./hosts=8x2`, or what follows `--`, is one).
bool is_bare_score_group(std::string_view word);

// "nodes=8x2,scored=comp7", with or without one or two dashes -> {"--nodes=8",
// "--ntasks-per-node=2",
// "--server=comp7"}; other keys are app's long options: "requeue,wall-time=5m" -> {"--requeue",
// "--wall-time=5m"}. Errors: Malformed naming the key or value.
Result<std::vector<std::string>> rewrite_score_group(const CLI::App& app, std::string_view group);

// `environment` is the text of SCORE_OPTIONS, which what is on the command line overrides. The
// command starts at the first word that is neither option nor value of one of app's, or after `--`.
Result<SplitCommand> split_command(const CLI::App& app, const std::vector<std::string>& args,
                                   std::string_view environment);

}  // namespace score::scout
