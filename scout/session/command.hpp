// What all commands share: name, common options, exit codes and output. Results go to stdout,
// messages to stderr.
#pragma once

#include "base/exit_codes.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

// Options that the user typed by other names, such as those of mpiexec: ours, and as typed.
using TypedNames = std::map<std::string, std::string>;

struct Invocation {
  std::string name;               // as the user called it: "scrun", "score job"
  std::vector<std::string> args;  // without the name
  std::string place{};            // what messages are about, after the name: "job.sh line 3: "
  std::shared_ptr<TypedNames> typed = std::make_shared<TypedNames>();  // of all copies

  // The same with other arguments.
  [[nodiscard]] Invocation with(std::vector<std::string> words) const {
    Invocation other = *this;
    other.args = std::move(words);
    return other;
  }
};

struct Command {
  const char* name;     // after `score`, and the symlink's name where there is one
  const char* summary;  // one line for `score --help`
  bool has_symlink;
  int (*main)(const Invocation&);
};

std::span<const Command> all_commands();

// Options that most commands have.
struct CommonOptions {
  std::string server;  // empty: SCORED_SERVER, else the packaged socket
  bool json = false;
  bool no_header = false;
  std::string fields;
  std::string color = "auto";
};

// The application object with name, description, --help and --version set.
void describe(CLI::App& app, const Invocation& invocation, std::string description);
void add_server_option(CLI::App& app, CommonOptions& options);
void add_json_option(CLI::App& app, CommonOptions& options);
void add_table_options(CLI::App& app, CommonOptions& options);  // json, no-header, -o, color

// Parses the arguments. A value is the exit code to end with now (--help: 0; error: 125, printed).
std::optional<int> parse(CLI::App& app, const Invocation& invocation);

// The text of an error as users see it.
std::string words_of(const Error& error);
// "NAME: TEXT" to stderr; gives kExitError.
int complain(const Invocation& invocation, std::string_view text);
// The same for an Error; an answer of the head that names an exit code gives that one.
int complain(const Invocation& invocation, const Error& error);

void print(std::string_view text);  // to stdout, all of it
void tell(std::string_view text);   // one line to stderr

// Columns of the terminal on stdout; 0 if it is not a terminal, and then nothing is cut.
std::size_t output_width();
bool use_color(const CommonOptions& options, int fd);

}  // namespace score::scout
