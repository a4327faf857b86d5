// sctop: the cluster live in a terminal. A view of what `score top --json` prints.

#include "base/exit_codes.hpp"
#include "monitor/sctop/curses_screen.hpp"
#include "monitor/sctop/document_source.hpp"
#include "monitor/sctop/view.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <poll.h>
#include <unistd.h>

namespace {

using namespace score::sctop;  // NOLINT: the program is its use

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<std::int64_t>;

constexpr int kWaitMs = 1000;  // a resized terminal is drawn anew at the latest then
// The slowest rate is a document each 10 s. While a head is away its screen stays.
constexpr std::chrono::seconds kSilence{12};

struct Options {
  bool once = false;
  std::string rate = "2";
  std::string server;
  std::string input;
  std::size_t columns = 120;
};

int complain(const std::string& text) {
  std::fprintf(stderr, "sctop: %s\n", text.c_str());
  return score::kExitError;
}

score::Result<DocumentSource> open_source(const Options& options) {
  if (!options.input.empty()) return DocumentSource::from_file(options.input);
  std::vector<std::string> words{"score", "top", "--json"};
  if (options.once) words.emplace_back("--once");
  if (!options.once) words.insert(words.end(), {"--rate", options.rate});
  if (!options.server.empty()) words.insert(words.end(), {"--server", options.server});
  return DocumentSource::from_command(words);
}

void print_plain(const std::vector<Line>& lines) {
  for (const auto& line : lines) {
    std::string text;
    for (const auto& span : line) text += span.text;
    text.erase(text.find_last_not_of(' ') + 1);
    std::puts(text.c_str());
  }
}

int show_once(DocumentSource& source, const Options& options) {
  std::optional<std::string> line;
  while (source.read()) {
    if ((line = source.newest())) break;
  }
  if (!line) return score::kExitError;  // the command said why
  const auto model = parse_document(*line);
  if (!model) return complain(model.error().message());
  const std::size_t lines = 12 + model->rows.size() + model->jobs.size() + model->nodes.size();
  auto screen = render(*model, ViewState(), {.lines = lines, .columns = options.columns});
  screen.pop_back();  // the keys
  while (!screen.empty() && screen.back().empty()) screen.pop_back();
  print_plain(screen);
  return 0;
}

void cancel(std::int64_t job, const Options& options) {
  const auto path = find_command("sccancel");
  if (!path) return;
  score::SpawnSpec spec;
  spec.path = *path;
  spec.argv = {"sccancel", std::to_string(job)};
  if (!options.server.empty()) spec.argv.insert(spec.argv.end(), {"--server", options.server});
  spec.environment = own_environment();
  auto spawned = score::spawn(spec);
  if (spawned) std::ignore = score::reap(spawned->pidfd.get(), true);
}

class Live {
 public:
  Live(DocumentSource& source, const Options& options) : source_(source), options_(options) {}

  // Until the user leaves or the source ends; why it ended, or nothing.
  std::string run() {
    CursesScreen screen;
    while (!view_.done) {
      const auto silence = Clock::now() - heard_;
      view_.silent_s = silence < kSilence ? 0 : std::chrono::floor<Seconds>(silence).count();
      screen.show(render(model_, view_, screen.size()));
      pollfd waiting[] = {{STDIN_FILENO, POLLIN, 0}, {source_.descriptor(), POLLIN, 0}};
      poll(waiting, 2, kWaitMs);
      if ((waiting[0].revents & (POLLHUP | POLLERR)) != 0) return "";
      while (const auto key = screen.next_key()) {
        if (const auto action = press(view_, *key, model_); action.cancel != 0) {
          cancel(action.cancel, options_);
        }
      }
      if (waiting[1].revents != 0 && !take()) return why_;
    }
    return "";
  }

 private:
  bool take() {
    if (!source_.read()) {
      why_ = "the stream ended";
      return false;
    }
    const auto line = source_.newest();
    if (line) heard_ = Clock::now();
    if (!line || view_.paused) return true;
    auto model = parse_document(*line);
    if (!model) {
      why_ = model.error().message();
      return false;
    }
    model_ = std::move(*model);
    return true;
  }

  DocumentSource& source_;
  const Options& options_;
  Model model_;
  ViewState view_;
  Clock::time_point heard_ = Clock::now();
  std::string why_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Shows the cluster live in the terminal"};
  app.set_version_flag("--version", "scored " SCORE_VERSION);
  app.add_flag("--once", options.once, "Print one screen as text, then exit");
  app.add_option("--rate", options.rate, "Updates per second, 0.1 to 10")->type_name("N");
  app.add_option("--server", options.server, "Socket or address of the head")->type_name("WHERE");
  app.add_option("--input", options.input, "Show documents of a file (-: standard input) instead")
      ->type_name("FILE");
  app.add_option("--columns", options.columns, "Width of the output of --once")
      ->check(CLI::Range(40, 1000))
      ->type_name("N");
  CLI11_PARSE(app, argc, argv);
  auto source = open_source(options);
  if (!source) return complain(source.error().message());
  if (options.once) return show_once(*source, options);
  if (auto opened = CursesScreen::open(); !opened) return complain(opened.error().message());
  const auto why = Live(*source, options).run();
  return why.empty() ? 0 : complain(why);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
