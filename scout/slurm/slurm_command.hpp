// Common parts of the commands that are named as Slurm's.
#pragma once

#include "scout/session/session.hpp"
#include "scout/slurm/words/option_words.hpp"

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

inline constexpr int kExitFailed = 1;  // Slurm's commands end with 1 after an error

struct CommandInfo {
  std::string_view usage;  // "[OPTION...] [JOB...]"
  std::string_view does;   // "lists jobs"
  Order order = Order::Any;
};

// Reads the command line. A returned `code` is the exit code to end with now, after --help,
// --version or an error, which has been printed.
struct ReadLine {
  CommandLine line;
  std::optional<int> code;
};

ReadLine read_line(const Invocation& invocation, std::span<const OptionForm> forms,
                   const CommandInfo& info);

// Prints "squeue: error: TEXT" and returns kExitFailed.
int print_failure(const Invocation& invocation, std::string_view text);
int print_failure(const Invocation& invocation, const Error& error);

// Connects to the head and calls `work`, as with_head() does, with the exit codes of Slurm.
int ask_head(const Invocation& invocation, const std::function<Result<int>(HeadLink&)>& work);

using WordSet = std::set<std::string, std::less<>>;

WordSet word_set(std::string_view list);
std::string own_user();  // its name, or its number

}  // namespace score::scout::slurm
