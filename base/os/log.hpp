#pragma once
// Logging for daemons and commands (libraries return errors instead). One event, one line on
// stderr:
//
//   log_notice("start job", kv("job", id), kv("user", name), kv("err", error));
//   <5>start job job=7 user=alice err="exec ./a.out: No such file or directory"
//
// Verb first, then key=value. Values of others are quoted, so a line or a key cannot be forged.
//   error: an operator must act · warning: handled, the line says how · notice: life cycle ·
//   info: transitions · debug: one a message
// The "<n>" is what journald reads; on a terminal it is left out. When stderr is not the journal
// the line has the wall time. Anything a peer can trigger goes through a LogLimiter. Thread-safe,
// except set_log_sink. A line is one write(2) of at most limits::kMaxLogLineBytes.

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

// The numbers are syslog's.
enum class LogLevel : std::uint8_t { Error = 3, Warning = 4, Notice = 5, Info = 6, Debug = 7 };

// "error" .. "debug". Errors: Malformed.
[[nodiscard]] Result<LogLevel> parse_log_level(std::string_view name);

// Lines less urgent than this are dropped before they are formatted. Starts at Notice.
void set_log_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);

// For tests and for daemons that count: gets every line (without priority, time and line end)
// instead of stderr. An empty function restores stderr. Not while other threads log.
using LogSink = std::function<void(LogLevel, std::string_view line)>;
void set_log_sink(LogSink sink);

// Writes a line made of parts already escaped. For the functions below.
void log_line(LogLevel level, std::string_view line);

template <typename T>
struct KeyValue {
  std::string_view key;
  const T& value;
};

// Both arguments must outlive the logging call, as temporaries in it do.
template <typename T>
KeyValue<T> kv(std::string_view key, const T& value) {
  return {key, value};
}

template <typename... Ts>
void log_event(LogLevel level, std::string_view verb, const KeyValue<Ts>&... values) {
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
void log_error(std::string_view verb, const KeyValue<Ts>&... values) {
  log_event(LogLevel::Error, verb, values...);
}

template <typename... Ts>
void log_warning(std::string_view verb, const KeyValue<Ts>&... values) {
  log_event(LogLevel::Warning, verb, values...);
}

template <typename... Ts>
void log_notice(std::string_view verb, const KeyValue<Ts>&... values) {
  log_event(LogLevel::Notice, verb, values...);
}

template <typename... Ts>
void log_info(std::string_view verb, const KeyValue<Ts>&... values) {
  log_event(LogLevel::Info, verb, values...);
}

template <typename... Ts>
void log_debug(std::string_view verb, const KeyValue<Ts>&... values) {
  log_event(LogLevel::Debug, verb, values...);
}

// For events that a peer can cause at will: a few lines, then silence, then how many were left out.
//   if (limiter.allow(now)) log_warning("refuse frame", kv("peer", peer),
//                                       kv("suppressed", limiter.take_suppressed()));
class LogLimiter {
 public:
  explicit LogLimiter(double lines_per_second = 1, double burst = 5)
      : bucket_(lines_per_second, burst) {}

  [[nodiscard]] bool allow(TimePoint now) { return bucket_.try_take(now); }

  // Lines refused since the last call.
  std::uint64_t take_suppressed() { return bucket_.take_refused(); }

 private:
  TokenBucket bucket_;
};

}  // namespace score::inline base
