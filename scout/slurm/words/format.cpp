#include "scout/slurm/words/format.hpp"

#include <cctype>
#include <utility>

namespace score::scout::slurm {

namespace {

constexpr std::size_t kNamedWidth = 20;
constexpr std::size_t kMostWidth = 10'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Reads "[.][WIDTH]" at `at`, and moves `at` behind it. Returns false for a width that is too
// large.
bool read_width(std::string_view text, std::size_t& at, Column& column) {
  column.is_right = at < text.size() && text[at] == '.';
  if (column.is_right) ++at;
  std::size_t width = 0;
  bool has_width = false;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    width = width * 10 + static_cast<std::size_t>(text[at] - '0');
    if (width > kMostWidth) return false;
    has_width = true;
  }
  if (has_width) column.width = width;
  return true;
}

Error bad_format(std::string_view text) {
  return fail(Errc::Malformed, "'{}' is not a format", escape_terminal(text, 200));
}

}  // namespace

Result<std::vector<Column>> read_letters(std::string_view format) {
  std::vector<Column> columns;
  std::string literal;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      literal += format[at];
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      literal += '%';
      continue;
    }
    Column column;
    // "%#N" asks for the width of the longest cell; cells are not cut without a width.
    if (at < format.size() && format[at] == '#') ++at;
    if (!read_width(format, at, column) || at >= format.size()) return bad_format(format);
    if (std::isalpha(static_cast<unsigned char>(format[at])) == 0) return bad_format(format);
    column.key = format[at];
    column.before = std::exchange(literal, {});
    columns.push_back(std::move(column));
  }
  if (columns.empty()) return bad_format(format);
  columns.back().after = std::move(literal);
  return columns;
}

Result<std::vector<Column>> read_names(std::string_view list) {
  std::vector<Column> columns;
  for (const auto part : split(list, ',')) {
    const auto item = trim(part);
    if (item.empty()) continue;
    const auto colon = item.find(':');
    Column column;
    column.key = std::string(item.substr(0, colon));
    column.width = kNamedWidth;
    if (colon != item.npos) {
      std::size_t at = colon + 1;
      if (!read_width(item, at, column)) return bad_format(list);
      column.after = std::string(item.substr(at));
    }
    if (column.key.empty()) return bad_format(list);
    columns.push_back(std::move(column));
  }
  if (columns.empty()) return bad_format(list);
  return columns;
}

std::string padded(const Column& column, std::string_view cell) {
  std::string text(cell);
  if (column.width > 0 && text.size() > column.width) {
    std::size_t end = column.width;
    // A character is not cut in two.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  const std::size_t missing = column.width > text.size() ? column.width - text.size() : 0;
  const std::string space(missing, ' ');
  return column.before + (column.is_right ? space + text : text + space) + column.after;
}

bool equal_names(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  const auto skip = [](std::string_view text, std::size_t& at) {
    while (at < text.size() && (text[at] == '-' || text[at] == '_')) ++at;
  };
  for (std::size_t j = 0;; ++i, ++j) {
    skip(a, i);
    skip(b, j);
    if (i >= a.size() || j >= b.size()) return i >= a.size() && j >= b.size();
    const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    if (lower(a[i]) != lower(b[j])) return false;
  }
}

}  // namespace score::scout::slurm
