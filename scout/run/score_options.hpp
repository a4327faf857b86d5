// Rewrites a command line before CLI11 parses it. SCore's own option form
// (`-nodes=8x2,scored=comp7`, and the same in SCORE_OPTIONS) and options of mpiexec become ours,
// and the program to run is split from the options before it.
#pragma once

#include "base/result.hpp"
#include "scout/session/command.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct SplitCommand {
  std::vector<std::string> options;  // for CLI11
  std::vector<std::string> command;  // program and its arguments, untouched
  // Options of mpiexec set these: NAME=value, for the program that follows and for the job.
  std::vector<std::string> variables{};
  std::vector<std::string> job_variables{};
  std::string config_file{};
  std::map<std::string, std::string> typed{};  // our option names, and the typed ones
};

// Returns true for `-` followed by two or more small letters and `=`, which no getopt cluster
// means.
bool is_score_group(std::string_view word);

// Returns true for a word that begins with one of SCore's own keys and an equal sign, "hosts=8x2".
// A program of that name is typed as `./hosts=8x2` or after `--`.
bool is_bare_score_group(std::string_view word);

// Converts "nodes=8x2,scored=comp7", with or without one or two dashes, to {"--nodes=8",
// "--ntasks-per-node=2", "--server=comp7"}. Other keys are app's long options:
// "requeue,wall-time=5m" becomes {"--requeue", "--wall-time=5m"}. Errors: Malformed, which names
// the key or value.
Result<std::vector<std::string>> rewrite_score_group(const CLI::App& app, std::string_view group);

// Splits the command line. `environment` is the text of SCORE_OPTIONS, which the command line
// overrides. The command starts at the first word that is neither an option nor a value of one of
// app's options, or after `--`.
Result<SplitCommand> split_command(const CLI::App& app, const std::vector<std::string>& args,
                                   std::string_view environment);

// Splits the arguments, parses the options, and sets `command`. A returned value is the exit code
// to end with now, as from parse().
std::optional<int> parse_with_command(CLI::App& app, const Invocation& invocation,
                                      std::vector<std::string>& command);

}  // namespace score::scout
