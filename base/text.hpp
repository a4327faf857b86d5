#pragma once
// Provides small functions on text: strict numbers, splitting, and escaping untrusted text for
// printing.

#include "base/result.hpp"

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

// Parses the whole of `text` as a decimal number: no sign for unsigned types, no blanks, nothing
// after it. Errors: Errc::Malformed, Errc::TooLarge (does not fit T).
template <std::integral T>
[[nodiscard]] Result<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) return Error(Errc::TooLarge);
  if (error != std::errc() || stop != end) return Error(Errc::Malformed);
  return value;
}

// Returns the parts between separators, including empty ones; "" has one empty part. The parts are
// views into `text`.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// Returns the text without blanks, tabs and line ends at both ends. The result is a view into
// `text`.
[[nodiscard]] std::string_view trim(std::string_view text);

// Returns text that is safe to print to a terminal. Control characters (including escape sequences
// and C1 controls), marks that change the direction of writing or are invisible, and bytes that are
// not UTF-8 become \n, \t or \xNN for each byte. Other UTF-8 and backslashes stay, so the result
// cannot be parsed back. It has at most `max_bytes` bytes (at least 4); a text that was cut ends in
// "...".
[[nodiscard]] std::string escape_terminal(std::string_view text, std::size_t max_bytes = 4096);

// Returns the last line of a program's output, which usually says why the program failed. It is
// safe to print.
[[nodiscard]] std::string last_line(std::string_view text);

// Returns a log value: unchanged if it is plain ("a.out"), otherwise quoted with escapes ("\"a
// b\"").
[[nodiscard]] std::string quote_value(std::string_view text, std::size_t max_bytes = 1024);

}  // namespace score::inline base
