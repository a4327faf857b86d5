#include "base/os/log.hpp"

#include "base/limits.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <sys/uio.h>
#include <unistd.h>

namespace score::inline base {

namespace {

std::atomic<LogLevel> threshold = LogLevel::Notice;

LogSink& sink() {
  static LogSink instance;
  return instance;
}

// The destination of stderr determines the prefix of a line.
struct Decoration {
  bool priority = isatty(STDERR_FILENO) == 0;
  bool time = std::getenv("JOURNAL_STREAM") == nullptr;  // NOLINT(concurrency-mt-unsafe)
};

const Decoration& decoration() {
  static const Decoration instance;
  return instance;
}

// Returns the time as "05:41:49.123456 " in UTC. Files and terminals need it, because they add no
// time.
std::string time_text(WallTime now) {
  const auto us = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()).count();
  const auto seconds = us / 1'000'000;
  return fmt::format("{:02}:{:02}:{:02}.{:06} ", seconds / 3600 % 24, seconds / 60 % 60,
                     seconds % 60, us % 1'000'000);
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kNames = {
      {{"error", LogLevel::Error},
       {"warning", LogLevel::Warning},
       {"notice", LogLevel::Notice},
       {"info", LogLevel::Info},
       {"debug", LogLevel::Debug}}};
  for (const auto& [text, level] : kNames) {
    if (text == name) return level;
  }
  return fail(Errc::Malformed, "log level '{}' (use error, warning, notice, info or debug)",
              escape_terminal(name, 40));
}

void set_log_level(LogLevel level) {
  threshold.store(level, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) {
  return level <= threshold.load(std::memory_order_relaxed);
}

void set_log_sink(LogSink new_sink) {
  sink() = std::move(new_sink);
}

void log_line(LogLevel level, std::string_view line) {
  if (sink()) {
    sink()(level, line);
    return;
  }
  std::string out;
  if (decoration().priority) out = fmt::format("<{}>", static_cast<int>(level));
  if (decoration().time) out += time_text(wall_now());
  out += line.substr(0, limits::kMaxLogLineBytes - out.size() - 1);
  out += '\n';
  // A failure is ignored, because it cannot be reported anywhere.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, out.data(), out.size());
}

}  // namespace score::inline base
