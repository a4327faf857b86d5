#pragma once
// The text of the simple PMI wire protocol, version 1.1, as MPICH's client speaks it: one command a
// line, "cmd=NAME key=value key=value\n"; only spawn takes several lines, "mcmd=spawn\n" to
// "endcmd\n". Keys and values hold no space and no line end. Pure; what it reads is hostile.

#include "base/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::shepherd {

// Bytes in, lines out.
class PmiLineReader {
 public:
  // Take every line after each feed: the buffer grows otherwise.
  void feed(std::string_view bytes) { pending_ += bytes; }

  // The next line without its end, valid until the next call; nothing yet: nullopt.
  // Errors: TooLarge (no line end within limits::kMaxPmiLineBytes); every later call gives it
  // again.
  base::Result<std::optional<std::string_view>> next();

 private:
  std::string pending_;
  std::size_t taken_ = 0;
};

// One parsed line: views into it.
struct PmiCommand {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> arguments;

  // The value of `key`, or nothing.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

// Errors: Malformed (does not begin with cmd=, a word without '=', a control character).
// The message of abort may hold anything: it reaches to the end of the line.
base::Result<PmiCommand> parse_pmi_line(std::string_view line);

}  // namespace score::shepherd
