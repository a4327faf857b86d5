#pragma once
// Logs events of daemons and commands (libraries return errors instead). One event is one line on
// stderr:
//
//    log_notice("Started job", kv("job", id), kv("user", name), kv("err", error));
//    <5>Started job job=7 user=alice err="cannot exec ./a.out: No such file or directory"
//
// The text comes first, then key=value. Values from outside are quoted, so that neither a line nor
// a key can be forged. The levels are:
//  error    an operator must act
//  warning  a fault that was handled; the line says how
//  notice   life cycle
//  info     transitions
//  debug    one line per message
// journald reads the "<n>"; it is left out on a terminal. When stderr is not the journal the line
// has the wall time. Events that a peer can trigger go through a LogLimiter. The functions are
// thread-safe, except set_log_sink. A line is one write(2) of at most limits::kMaxLogLineBytes.

#include "base/async/token_bucket.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/time.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace score::inline base {

// The numbers are those of syslog.
enum class LogLevel : std::uint8_t { Error = 3, Warning = 4, Notice = 5, Info = 6, Debug = 7 };

// Parses "error", "warning", "notice", "info" or "debug". Errors: Malformed.
[[nodiscard]] Result<LogLevel> parse_log_level(std::string_view name);

// Sets the threshold: lines less urgent than this are dropped before they are formatted. It starts
// at Notice.
void set_log_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);

// Sets a function that receives every line (without priority, time and line end) instead of stderr.
// It is for tests and for daemons that count lines. An empty function restores stderr. It must not
// be called while other threads log.
using LogSink = std::function<void(LogLevel, std::string_view line)>;
void set_log_sink(LogSink sink);

// Writes a line whose parts are already escaped. The functions below use it.
void log_line(LogLevel level, std::string_view line);

template <typename T>
struct LogField {
  std::string_view key;
  const T& value;
};

// Both arguments must outlive the logging call, as temporaries in it do.
template <typename T>
LogField<T> kv(std::string_view key, const T& value) {
  return {key, value};
}

template <typename... Ts>
void log_event(LogLevel level, std::string_view verb, const LogField<Ts>&... values) {
  if (!log_enabled(level)) return;
  std::string line(verb);
  [[maybe_unused]] const auto append = [&line](std::string_view key, const std::string& text) {
    ((line += ' ') += key) += '=';
    line += quote_value(text);
  };
  (append(values.key, fmt::format("{}", values.value)), ...);
  log_line(level, line);
}

template <typename... Ts>
void log_error(std::string_view verb, const LogField<Ts>&... values) {
  log_event(LogLevel::Error, verb, values...);
}

template <typename... Ts>
void log_warning(std::string_view verb, const LogField<Ts>&... values) {
  log_event(LogLevel::Warning, verb, values...);
}

template <typename... Ts>
void log_notice(std::string_view verb, const LogField<Ts>&... values) {
  log_event(LogLevel::Notice, verb, values...);
}

template <typename... Ts>
void log_info(std::string_view verb, const LogField<Ts>&... values) {
  log_event(LogLevel::Info, verb, values...);
}

template <typename... Ts>
void log_debug(std::string_view verb, const LogField<Ts>&... values) {
  log_event(LogLevel::Debug, verb, values...);
}

// A LogLimiter is for events that a peer can cause at will: a few lines are logged, and then only
// how many were left out.
//    if (limiter.allow(now)) log_warning("Rejected frame", kv("peer", peer),
//                                        kv("suppressed", limiter.take_suppressed()));
class LogLimiter {
 public:
  explicit LogLimiter(double lines_per_second = 1, double burst = 5)
      : bucket_(lines_per_second, burst) {}

  [[nodiscard]] bool allow(TimePoint now) { return bucket_.try_take(now); }

  // Returns the number of lines refused since the last call.
  std::uint64_t take_suppressed() { return bucket_.take_refused(); }

 private:
  TokenBucket bucket_;
};

}  // namespace score::inline base
