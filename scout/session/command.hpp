// This header declares the parts that all commands share: name, common options, exit codes and
// output. Results go to stdout, messages to stderr.
#pragma once

#include "base/exit_codes.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

// Options that the user typed by other names, such as those of mpiexec. Each pair holds our name
// and the typed one.
using TypedNames = std::map<std::string, std::string>;

struct Invocation {
  std::string name;               // as the user called it: "scrun", "score job"
  std::vector<std::string> args;  // without the name
  std::string place{};            // printed after the name: "job.sh line 3: "
  std::shared_ptr<TypedNames> typed = std::make_shared<TypedNames>();  // shared by all copies

  // Returns a copy with other arguments.
  [[nodiscard]] Invocation with(std::vector<std::string> words) const {
    Invocation other = *this;
    other.args = std::move(words);
    return other;
  }
};

// Runs the main function of a command with SIGPIPE ignored. An exception is printed as an error.
// Returns the exit code.
int run_main(const Invocation& invocation, int (*main)(const Invocation&));

// Holds the values of options that most commands have.
struct CommonOptions {
  std::string server;  // empty: SCORED_SERVER, else the packaged socket
  bool json = false;
  bool no_header = false;
  std::string fields;
  std::string color = "auto";
};

// Sets name, description, --help and --version of the application object, and the format of its
// help.
void describe(CLI::App& app, const Invocation& invocation, std::string description);
void add_server_option(CLI::App& app, CommonOptions& options);
void add_json_option(CLI::App& app, CommonOptions& options);
void add_table_options(CLI::App& app, CommonOptions& options);  // json, no-header, -o, color

// Parses the arguments. A returned value is the exit code to end with now: 0 after --help, 125
// after an error, which has been printed.
std::optional<int> parse(CLI::App& app, const Invocation& invocation);

// Returns the text of an error as users see it.
std::string words_of(const Error& error);
// Prints "NAME: TEXT" to stderr and returns kExitError.
int print_error(const Invocation& invocation, std::string_view text);
// Prints the error in the same way. Returns the exit code that the head named, else kExitError.
int print_error(const Invocation& invocation, const Error& error);

void print(std::string_view text);  // all of it to stdout
void tell(std::string_view text);   // one line to stderr

// Returns the width of the terminal on stdout in columns; 0 if stdout is not a terminal, so nothing
// is cut.
std::size_t output_width();
bool use_color(const CommonOptions& options, int fd);

}  // namespace score::scout
