#include "scout/session/command.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/session/head_link.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sys/ioctl.h>
#include <unistd.h>

namespace score::scout {

int run_main(const Invocation& invocation, int (*main)(const Invocation&)) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return main(invocation);
  } catch (const std::exception& error) {
    return print_error(invocation, error.what());
  }
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

namespace {

// Returns the message for an unknown option: "unknown option '--nodse'; did you mean --nodes?".
std::string unknown_option(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  const auto add = [&known](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      if (option->get_group().empty()) continue;  // hidden from users
      for (const auto& long_name : option->get_lnames()) known.push_back("--" + long_name);
    }
  };
  add(app);
  for (const CLI::App* chosen : app.get_subcommands()) add(*chosen);
  const std::string text = fmt::format("unknown option '{}'", escape_terminal(name, 200));
  const std::string near = name.starts_with("--") ? nearest_word(name, known) : "";
  return near.empty() ? text : fmt::format("{}; did you mean {}?", text, near);
}

// Shortens a number of the parser: "0.100000" becomes "0.1", and "4096" stays.
std::string short_number(std::string text) {
  if (text.find('.') == text.npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Rewrites the parser's messages about limits. "Value 0 not in range 1 to 1000" becomes "'0' is not
// a number from 1 to 1000", and "x not in {a,b}" becomes "'x' is not one of a, b". Returns an empty
// string for any other message.
std::string plain_limits(const std::string& rest) {
  constexpr std::string_view kValue = "Value ";
  constexpr std::string_view kRange = " not in range ";
  constexpr std::string_view kTo = " to ";
  constexpr std::string_view kSet = " not in {";
  const auto range = rest.rfind(kRange);
  if (rest.starts_with(kValue) && range != rest.npos) {
    const std::string limits = rest.substr(range + kRange.size());
    const auto to = limits.find(kTo);
    const auto most = to == limits.npos ? "" : short_number(limits.substr(to + kTo.size()));
    return fmt::format("'{}' is not a number {}", rest.substr(kValue.size(), range - kValue.size()),
                       range_words(short_number(limits.substr(0, to)), most));
  }
  const auto set = rest.rfind(kSet);
  if (set == rest.npos) return {};
  std::string words = rest.substr(set + kSet.size());
  words.erase(std::min(words.size(), words.rfind('}')));
  for (auto comma = words.find(','); comma != words.npos; comma = words.find(',', comma + 2)) {
    words.replace(comma, 1, ", ");
  }
  return fmt::format("'{}' is not one of {}", rest.substr(0, set), words);
}

// Rewrites a message of the parser in plain words. A message that is not known here stays as it is.
std::string plain_words(const std::string& what) {
  constexpr std::string_view kConvert = "Could not convert: ";
  constexpr std::string_view kRequired = " is required";
  constexpr std::string_view kOverride = " was given a disallowed flag override";
  const auto before = [&what](std::string_view end) {
    return what.substr(0, what.size() - end.size());
  };
  if (what.starts_with(kConvert)) {
    const auto equals = what.find(" = ");
    if (equals == what.npos) return what;
    return fmt::format("{}: '{}' is not a number",
                       what.substr(kConvert.size(), equals - kConvert.size()),
                       what.substr(equals + 3));
  }
  if (what.ends_with(kRequired)) return before(kRequired) + " is missing";
  if (what.ends_with(kOverride)) return before(kOverride) + " takes no value";
  const auto colon = what.find(": ");
  if (colon == what.npos) return what;
  const std::string option = what.substr(0, colon);
  const std::string rest = what.substr(colon + 2);
  if (rest.ends_with(" missing") && rest.find(" required ") != rest.npos) {
    return option + " needs a value";
  }
  const std::string limits = plain_limits(rest);
  return limits.empty() ? what : fmt::format("{}: {}", option, limits);
}

// Describes an option's value in the help: the name "N" and the range "from 1 to 4096". The range
// is empty if the parser checks none.
struct ValueWords {
  std::string name;
  std::string range;
};

// Translates the parser's description of a value. "N:UINT in [1 - 4096]" becomes "N" with a range,
// "TEXT:{block,cyclic}" becomes "block|cyclic", and "WHEN:{auto,always,never}" becomes "WHEN".
ValueWords value_words(std::string text) {
  ValueWords words;
  for (const std::string_view type : {":UINT in [", ":INT in [", ":FLOAT in ["}) {
    const auto at = text.find(type);
    if (at == text.npos) continue;
    const auto begin = at + type.size();
    const std::string limits = text.substr(begin, text.find(']', begin) - begin);
    constexpr std::string_view kBetween = " - ";
    if (const auto between = limits.find(kBetween); between != limits.npos) {
      words.range =
          range_words(limits.substr(0, between), limits.substr(between + kBetween.size()));
    }
    text.erase(at);
  }
  constexpr std::string_view kSet = ":{";
  if (const auto set = text.find(kSet); set != text.npos) {
    const auto begin = set + kSet.size();
    std::string members = text.substr(begin, text.find('}', begin) - begin);
    std::ranges::replace(members, ',', '|');
    const std::string name = text.substr(0, set);
    text = name == "TEXT" ? members : name;
  }
  if (text == "UINT" || text == "INT" || text == "FLOAT") text = "N";
  words.name = std::move(text);
  return words;
}

// Adds a note to the description of an option, before a default in parentheses at its end: "Virtual
// nodes (4)" becomes "Virtual nodes; from 1 to 4096 (4)". An empty note changes nothing.
void add_note(std::string& text, const std::string& note) {
  if (note.empty()) return;
  const auto end = text.ends_with(')') ? text.rfind(" (") : text.npos;
  text.insert(std::min(end, text.size()), "; " + note);
}

// Prints the help without the parser's names of types: the left column has the value's name, and
// the description has its range and the options that exclude this one.
class PlainFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string name = value_words(option->get_type_name()).name;
    if (option->get_type_size() == 0 || name.empty()) return {};  // a flag
    const bool is_optional = option->get_expected_min() == 0;
    if (is_optional && !name.starts_with('[')) name = "[" + name + "]";
    const bool is_list = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    if (is_list && name.find("...") == name.npos) name += " ...";
    const bool is_marked = option->get_required() && !option->get_positional();
    return " " + name + (is_marked ? " (required)" : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_desc(option);
    if (option->get_type_size() != 0) add_note(text, value_words(option->get_type_name()).range);
    for (const CLI::Option* other : option->get_excludes()) {
      add_note(text, "not with " + other->get_name());
    }
    return text;
  }
};

}  // namespace

void describe(CLI::App& app, const Invocation& invocation, std::string description) {
  app.name(invocation.name);
  app.description(std::move(description));
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", std::string("scored ") + SCORE_VERSION,
                       "Print the version and exit");
  app.option_defaults()->always_capture_default(false);
  app.formatter(std::make_shared<PlainFormatter>());
}

std::optional<int> parse(CLI::App& app, const Invocation& invocation) {
  std::vector<std::string> reversed(invocation.args.rbegin(), invocation.args.rend());
  const auto refuse = [&](const std::string& text) {
    return print_error(invocation, fmt::format("{} (try {} --help)", text, invocation.name));
  };
  const auto rest = [&app] { return app.remaining(true); };
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return kExitOk;
  } catch (const CLI::CallForVersion&) {
    print(app.version() + "\n");
    return kExitOk;
  } catch (const CLI::ExtrasError& error) {
    const auto words = rest();
    const std::string word = words.empty() ? error.what() : words.front();
    if (word.starts_with('-')) return refuse(unknown_option(app, word));
    return refuse(fmt::format("unexpected argument '{}'", escape_terminal(word, 200)));
  } catch (const CLI::ParseError& error) {
    // An unknown option is reported before an argument that is missing because of it.
    for (const auto& word : rest()) {
      const bool is_option = word.size() > 1 && word.starts_with('-');
      if (is_option && error.get_name() == "RequiredError")
        return refuse(unknown_option(app, word));
    }
    return refuse(escape_terminal(plain_words(error.what()), 400));
  }
  return std::nullopt;
}

namespace {

// Replaces our option name at the start of the text by the name that the user typed.
std::string as_typed(const Invocation& invocation, std::string_view text) {
  std::string words(text);
  for (const auto& [ours, typed] : *invocation.typed) {
    const bool is_named =
        words.starts_with(ours) && words.size() > ours.size() &&
        std::string_view(" :=").find(words[ours.size()]) != std::string_view::npos;
    if (is_named) return words.replace(0, ours.size(), typed);
  }
  return words;
}

}  // namespace

int print_error(const Invocation& invocation, std::string_view text) {
  tell(fmt::format("{}: {}{}", invocation.name, invocation.place, as_typed(invocation, text)));
  return kExitError;
}

std::string words_of(const Error& error) {
  // Our own messages and the head's are complete sentences; an errno needs its message.
  const auto& category = error.code().category();
  const bool is_sentence =
      !error.context().empty() && (category == errc_category() || category == head_category());
  return is_sentence ? error.context() : error.message();
}

int print_error(const Invocation& invocation, const Error& error) {
  print_error(invocation, escape_terminal(words_of(error), 4096));
  return exit_code_of(error);
}

void print(std::string_view text) {
  const auto written = write_all(STDOUT_FILENO, text);
  if (written) return;
  // It is no error that a reader has closed the pipe (`scq | head -1`); a full disk is one.
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
