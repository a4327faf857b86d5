#pragma once
// Parses the text of the simple PMI wire protocol, version 1.1, in the dialect of MPICH's client.
// Each command is one line, "cmd=NAME key=value key=value\n"; only spawn takes several lines, from
// "mcmd=spawn\n" to "endcmd\n". Keys and values contain no space and no line end, except that names
// of services (publish_name, unpublish_name, lookup_name) may contain spaces. This module is pure;
// its input is hostile.

#include "base/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::shepherd {

// Splits a stream of bytes into lines.
class PmiLineReader {
 public:
  // Appends bytes to the buffer. The caller must take every line after each feed, or the buffer
  // grows.
  void feed(std::string_view bytes) { pending_ += bytes; }

  // Returns the next line without its end, valid until the next call; nullopt if no line is
  // complete.
  // Errors: TooLarge (no line end within limits::kMaxPmiLineBytes); every later call returns it
  // again.
  base::Result<std::optional<std::string_view>> next();

  // Returns true if no part of a line is waiting for the rest.
  [[nodiscard]] bool is_empty() const { return taken_ == pending_.size(); }

 private:
  std::string pending_;
  std::size_t taken_ = 0;
};

// A command consists of views into the parsed line.
struct PmiCommand {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string_view>> arguments;

  // Returns the value of `key`, or nullopt.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

// Errors: Malformed (does not begin with cmd=, a word without '=', a control character).
// The message of abort may contain anything and extends to the end of the line.
base::Result<PmiCommand> parse_pmi_line(std::string_view line);

}  // namespace score::shepherd
