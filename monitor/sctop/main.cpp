// sctop shows the live state of the cluster in a terminal. It displays the output of `score top
// --json`.

#include "base/exit_codes.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "monitor/sctop/curses_screen.hpp"
#include "monitor/sctop/document_source.hpp"
#include "monitor/sctop/view.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <poll.h>
#include <unistd.h>

namespace {

using namespace score::sctop;  // NOLINT: the program is its use

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<std::int64_t>;

constexpr int kWaitMs = 1000;  // a resized terminal is redrawn after at most this time
// A head that sends nothing for this long after the next document was due is reported as silent.
constexpr std::chrono::seconds kMostDelay{2};
constexpr double kSlowest = 0.1, kFastest = 10;    // updates per second
constexpr double kNarrowest = 40, kWidest = 1000;  // columns

struct SctopOptions {
  bool once = false;
  std::string rate = "2";
  std::string server;
  std::string input;
  std::size_t columns = 120;
};

int print_error(const std::string& text) {
  std::fprintf(stderr, "sctop: %s\n", text.c_str());
  return score::kExitError;
}

score::Result<DocumentSource> open_source(const SctopOptions& options) {
  if (!options.input.empty()) return DocumentSource::from_file(options.input);
  std::vector<std::string> words{"score", "top", "--json"};
  if (options.once) words.emplace_back("--once");
  if (!options.once) words.insert(words.end(), {"--rate", options.rate});
  if (!options.server.empty()) words.insert(words.end(), {"--server", options.server});
  return DocumentSource::from_command(words, !options.once);
}

void print_plain(const std::vector<StyledLine>& lines) {
  for (const auto& line : lines) {
    std::string text;
    for (const auto& span : line) text += span.text;
    text.erase(text.find_last_not_of(' ') + 1);
    std::puts(text.c_str());
  }
}

int show_once(DocumentSource& source, const SctopOptions& options) {
  std::optional<std::string> line;
  while (source.read()) {
    if ((line = source.newest())) break;
  }
  if (!line) return score::kExitError;  // the command has printed the reason
  const auto model = parse_document(*line);
  if (!model) return print_error(plain_text(model.error()));
  const std::size_t lines = 12 + model->rows.size() + model->jobs.size() + model->nodes.size();
  auto screen = render(*model, ViewState(), {.lines = lines, .columns = options.columns});
  screen.pop_back();  // the line of keys
  while (!screen.empty() && screen.back().empty()) screen.pop_back();
  print_plain(screen);
  return 0;
}

void cancel(std::int64_t job, const SctopOptions& options) {
  const auto path = find_command("sccancel");
  if (!path) return;
  score::SpawnSpec spec;
  spec.path = *path;
  spec.argv = {"sccancel", std::to_string(job)};
  if (!options.server.empty()) spec.argv.insert(spec.argv.end(), {"--server", options.server});
  spec.environment = score::own_environment();
  auto spawned = score::spawn(spec);
  if (spawned) std::ignore = score::reap(spawned->pidfd.get(), true);
}

class Live {
 public:
  Live(DocumentSource& source, const SctopOptions& options)
      : source_(source),
        options_(options),
        period_(1 / std::strtod(options.rate.c_str(), nullptr)) {}

  // Runs until the user quits or the source ends. Returns the reason of the end, or "".
  std::string run() {
    CursesScreen screen;
    while (!view_.done) {
      view_.silent_s = silent_s();
      screen.show(render(model_, view_, screen.size()));
      pollfd waiting[] = {{STDIN_FILENO, POLLIN, 0},
                          {source_.descriptor(), POLLIN, 0},
                          {source_.message_descriptor(), POLLIN, 0}};
      poll(waiting, 3, kWaitMs);
      if ((waiting[0].revents & (POLLHUP | POLLERR)) != 0) return "";
      while (const auto key = screen.next_key()) {
        if (const auto action = press(view_, *key, model_); action.cancel != 0) {
          cancel(action.cancel, options_);
        }
      }
      if (waiting[2].revents != 0) {
        source_.read_messages();
        view_.trouble = source_.message();
      }
      if (waiting[1].revents != 0 && !take()) return why_;
    }
    return "";
  }

 private:
  // Returns 0 while documents come in time, and for a file, which has no rate.
  [[nodiscard]] std::int64_t silent_s() const {
    const auto silence = Clock::now() - heard_;
    const bool is_silent = options_.input.empty() && silence > period_ + kMostDelay;
    return is_silent ? std::chrono::floor<Seconds>(silence).count() : 0;
  }

  bool take() {
    if (!source_.read()) {
      source_.read_messages();
      why_ = source_.message().empty() ? "the stream ended" : source_.message();
      return false;
    }
    const auto line = source_.newest();
    if (line) {
      heard_ = Clock::now();
      view_.trouble.clear();
    }
    if (!line || view_.paused) return true;
    auto model = parse_document(*line);
    if (!model) {
      why_ = plain_text(model.error());
      return false;
    }
    model_ = std::move(*model);
    return true;
  }

  DocumentSource& source_;
  const SctopOptions& options_;
  std::chrono::duration<double> period_;  // of the documents
  Model model_;
  ViewState view_;
  Clock::time_point heard_ = Clock::now();
  std::string why_;
};

std::string range_of(double least, double most) {
  return score::range_words(fmt::format("{:g}", least), fmt::format("{:g}", most));
}

std::string check_number(const std::string& text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && value >= least && value <= most) return "";
  return fmt::format("'{}' is not a number {}", score::escape_terminal(text, 80),
                     range_of(least, most));
}

// Parses the command line. Returns the exit status if the program must end now.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ExtrasError& error) {
    const auto rest = app.remaining();
    const std::string word = rest.empty() ? error.what() : rest.front();
    return print_error(fmt::format("{} '{}' (try sctop --help)",
                                   word.starts_with('-') ? "unknown option" : "unexpected argument",
                                   score::escape_terminal(word, 200)));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    return print_error(
        fmt::format("{} needs a value (try sctop --help)", what.substr(0, what.find(':'))));
  } catch (const CLI::ParseError& error) {
    return print_error(
        fmt::format("{} (try sctop --help)", score::escape_terminal(error.what(), 400)));
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  SctopOptions options;
  CLI::App app{"Shows the cluster live in the terminal", "sctop"};
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", "scored " SCORE_VERSION, "Print the version and exit");
  app.add_flag("--once", options.once, "Print one screen as text, then exit");
  app.add_option("--rate", options.rate, "Updates per second; " + range_of(kSlowest, kFastest))
      ->type_name("N")
      ->check([](const std::string& text) { return check_number(text, kSlowest, kFastest); });
  app.add_option("--server", options.server, "Socket or address of the head")->type_name("WHERE");
  app.add_option("--input", options.input, "Show the documents in a file (-: standard input)")
      ->type_name("FILE");
  app.add_option("--columns", options.columns,
                 "Width of the output of --once; " + range_of(kNarrowest, kWidest))
      ->check([](const std::string& text) { return check_number(text, kNarrowest, kWidest); })
      ->type_name("N");
  if (const auto code = parse(app, argc, argv)) return *code;
  auto source = open_source(options);
  if (!source) return print_error(plain_text(source.error()));
  if (options.once) return show_once(*source, options);
  if (auto opened = CursesScreen::open(); !opened) return print_error(plain_text(opened.error()));
  const auto why = Live(*source, options).run();
  return why.empty() ? 0 : print_error(why);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return print_error(error.what());
  }
}
