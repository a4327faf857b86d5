#include "base/text/json_writer.hpp"

#include "base/utf8.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace score::inline base {

namespace {

void append_character(std::string& out, std::string_view sequence) {
  const char c = sequence[0];
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += sequence;
  }
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; });
}

// Numbers with few digits, as most numbers are, are written like integers. A general conversion
// would take a quarter of the time of writing a document.
constexpr double kMostExact = 9e15;  // below 2^53
constexpr double kMostDigits = 1e10;

struct Decimals {
  int count = 0;
  bool keeps_zeros = false;  // at the end
};

// Appends `scaled` / 10^count.
void append_decimal(std::string& out, std::int64_t scaled, Decimals decimals) {
  std::array<char, 32> text;
  char* at = text.data() + text.size();
  bool is_kept = decimals.keeps_zeros;
  auto rest = static_cast<std::uint64_t>(std::abs(scaled));
  for (int i = 0; i < decimals.count; ++i, rest /= 10) {
    is_kept = is_kept || rest % 10 != 0;
    if (is_kept) *--at = static_cast<char>('0' + rest % 10);
  }
  if (is_kept && decimals.count > 0) *--at = '.';
  do {
    *--at = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (scaled < 0) *--at = '-';
  out.append(at, text.data() + text.size());
}

// Appends the number with 4 or 9 decimals and returns true, if ten digits represent it exactly.
bool append_short(std::string& out, double number) {
  for (const auto& [count, scale] : {std::pair(4, 1e4), std::pair(9, 1e9)}) {
    const double scaled = number * scale;
    if (!(std::abs(scaled) < kMostDigits)) continue;
    const auto whole = std::llrint(scaled);
    if (static_cast<double>(whole) / scale != number) continue;
    append_decimal(out, whole, {count, false});
    return true;
  }
  return false;
}

}  // namespace

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  if (is_plain(text)) {
    text_ += text;
    text_ += '"';
    return;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";
      ++at;
      continue;
    }
    append_character(text_, text.substr(at, length));
    at += length;
  }
  text_ += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += layout_ == Layout::Page ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  return raw(flag ? "true" : "false");
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  if (append_short(text_, number)) return *this;
  fmt::format_to(std::back_inserter(text_), "{:.10g}", number);
  return *this;
}

JsonWriter& JsonWriter::fixed(double number, int decimals) {
  if (!std::isfinite(number)) return null();
  separate();
  if (decimals == 6 && std::abs(number) < kMostExact / 1e6) {
    append_decimal(text_, std::llrint(number * 1e6), {6, true});
    return *this;
  }
  fmt::format_to(std::back_inserter(text_), "{:.{}f}", number, decimals);
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  const bool breaks = layout_ == Layout::Page && has_items_.size() < 2;
  if (had_items && breaks) text_ += "\n" + std::string(has_items_.size() * 2, ' ');
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
  return *this;
}

// The two outer levels go on separate lines. This makes the text readable and keeps each job on one
// line for grep.
void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  const bool is_page = layout_ == Layout::Page;
  if (has_items_.back()) text_ += is_page && has_items_.size() > 2 ? ", " : ",";
  if (is_page && has_items_.size() <= 2) text_ += "\n" + std::string(has_items_.size() * 2, ' ');
  has_items_.back() = true;
}

}  // namespace score::inline base
