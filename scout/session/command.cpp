#include "scout/session/command.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scout/session/head_link.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace score::scout {

void describe(CLI::App& app, const Invocation& invocation, std::string description) {
  app.name(invocation.name);
  app.description(std::move(description));
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", std::string("scored ") + SCORE_VERSION);
  app.option_defaults()->always_capture_default(false);
}

void add_server_option(CLI::App& app, CommonOptions& options) {
  app.add_option("--server", options.server,
                 "Socket of the head; default: SCORED_SERVER, else /run/scored/head.sock")
      ->type_name("SOCKET");
}

void add_json_option(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json,
               "Print JSON; the field \"schema\" names its format and version");
}

void add_table_options(CLI::App& app, CommonOptions& options) {
  add_json_option(app, options);
  app.add_flag("--no-header", options.no_header, "Omit the header line");
  app.add_option("-o,--format", options.fields, "Columns to print, e.g. job,state")
      ->type_name("FIELD,...");
  app.add_option("--color", options.color, "auto, always or never; NO_COLOR is honoured")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

std::optional<int> parse(CLI::App& app, const Invocation& invocation) {
  std::vector<std::string> reversed(invocation.args.rbegin(), invocation.args.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return kExitOk;
  } catch (const CLI::CallForVersion&) {
    print(app.version() + "\n");
    return kExitOk;
  } catch (const CLI::ExtrasError& error) {
    const auto rest = app.remaining();
    const std::string word = rest.empty() ? error.what() : rest.front();
    const char* what = word.starts_with('-') ? "unknown option" : "unexpected argument";
    return complain(invocation, fmt::format("{} '{}' (try {} --help)", what,
                                            escape_terminal(word, 200), invocation.name));
  } catch (const CLI::RequiredError& error) {
    // Report an unknown option before a missing argument.
    for (const auto& word : app.remaining()) {
      if (!word.starts_with('-')) continue;
      return complain(invocation, fmt::format("unknown option '{}' (try {} --help)",
                                              escape_terminal(word, 200), invocation.name));
    }
    return complain(invocation, fmt::format("{} (try {} --help)", error.what(), invocation.name));
  } catch (const CLI::ParseError& error) {
    return complain(invocation, fmt::format("{} (try {} --help)",
                                            escape_terminal(error.what(), 400), invocation.name));
  }
  return std::nullopt;
}

int complain(const Invocation& invocation, std::string_view text) {
  tell(fmt::format("{}: {}{}", invocation.name, invocation.place, text));
  return kExitError;
}

std::string words_of(const Error& error) {
  // Texts of our own checks and of the head are complete; an errno needs its message.
  const auto& category = error.code().category();
  const bool is_sentence =
      !error.context().empty() && (category == errc_category() || category == head_category());
  return is_sentence ? error.context() : error.message();
}

int complain(const Invocation& invocation, const Error& error) {
  complain(invocation, escape_terminal(words_of(error), 4096));
  return exit_code_of(error);
}

void print(std::string_view text) {
  const auto written = write_all(STDOUT_FILENO, text);
  if (written) return;
  // A reader that closed the pipe (`scq | head -1`) is not an error; a full disk is.
  if (!written.error().is(std::errc::broken_pipe)) {
    tell("cannot write to standard output: " + written.error().code().message());
  }
  _exit(kExitError);
}

void tell(std::string_view text) {
  const std::string line = std::string(text) + "\n";
  if (const auto written = write_all(STDERR_FILENO, line); !written) return;
}

std::size_t output_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool use_color(const CommonOptions& options, int fd) {
  if (options.color == "always") return true;
  const char* no_color = std::getenv("NO_COLOR");
  if (options.color == "never" || (no_color != nullptr && *no_color != '\0')) return false;
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace score::scout
