#include "scout/session/text_table.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace score::scout {

namespace {

constexpr std::size_t kLeastShrunk = 8;  // width below which no column is cut
constexpr std::string_view kCut = "…";
constexpr std::string_view kGap = "  ";

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

std::string first_columns(std::string_view text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_character(text[i]) && seen++ == columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

std::string cut(const std::string& text, std::size_t columns) {
  if (display_width(text) <= columns) return text;
  return columns == 0 ? std::string() : first_columns(text, columns - 1) + std::string(kCut);
}

std::string_view start_of(Tint tint) {
  switch (tint) {
    case Tint::Good:
      return "\x1b[32m";
    case Tint::Wait:
      return "\x1b[33m";
    case Tint::Bad:
      return "\x1b[31m";
    case Tint::Faint:
      return "\x1b[2m";
    case Tint::None:
      break;
  }
  return "";
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

TableStyle table_style(const CommonOptions& options) {
  return {.with_header = !options.no_header,
          .width = output_width(),
          .color = use_color(options, STDOUT_FILENO)};
}

void TextTable::add(std::vector<std::string> cells, std::vector<Tint> tints) {
  for (auto& cell : cells) {
    if (cell.empty()) cell.assign(1, '-');  // every line has all columns, for awk
  }
  tints.resize(headings_.size(), Tint::None);
  rows_.push_back({std::move(cells), std::move(tints)});
}

// If the terminal is too narrow, columns that may shrink are cut, the widest column first.
std::vector<std::size_t> TextTable::widths(const TableStyle& style) const {
  std::vector<std::size_t> widths;
  std::size_t sum = 0;
  for (std::size_t c = 0; c < headings_.size(); ++c) {
    std::size_t width = style.with_header ? display_width(headings_[c].text) : 0;
    for (const Row& row : rows_) width = std::max(width, display_width(row.cells[c]));
    widths.push_back(width);
    sum += width + (c == 0 ? 0 : kGap.size());
  }
  while (style.width > 0 && sum > style.width) {
    std::size_t* widest = nullptr;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const bool can = headings_[c].may_shrink && widths[c] > kLeastShrunk;
      if (can && (widest == nullptr || widths[c] > *widest)) widest = &widths[c];
    }
    if (widest == nullptr) break;
    --*widest;
    --sum;
  }
  return widths;
}

std::string TextTable::line(const Row& row, const std::vector<std::size_t>& widths,
                            const TableStyle& style) const {
  std::vector<std::pair<std::string, Tint>> parts;
  std::string blanks;  // blanks before the next cell; none at the end of the line
  std::size_t all = 0;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    std::string cell = headings_[c].may_shrink ? cut(row.cells[c], widths[c]) : row.cells[c];
    const std::string pad(widths[c] - display_width(cell), ' ');
    const bool is_right = headings_[c].align == Align::Right;
    if (c > 0) blanks += kGap;
    if (is_right) blanks += pad;
    all += blanks.size() + display_width(cell);
    parts.emplace_back(std::exchange(blanks, is_right ? "" : pad), Tint::None);
    parts.emplace_back(std::move(cell), row.tints[c]);
  }
  const bool is_cut = style.width > 1 && all > style.width;
  std::size_t left = is_cut ? style.width - 1 : all;
  std::string out;
  for (const auto& [text, tint] : parts) {
    const std::string shown = first_columns(text, left);
    left -= display_width(shown);
    const bool has_tint = style.color && tint != Tint::None && !shown.empty();
    out += has_tint ? std::string(start_of(tint)) + shown + "\x1b[0m" : shown;
  }
  return is_cut ? out + std::string(kCut) : out;
}

std::string TextTable::to_text(const TableStyle& style) const {
  const auto columns = widths(style);
  std::string out;
  if (style.with_header) {
    Row heading;
    for (const Heading& each : headings_) heading.cells.push_back(each.text);
    heading.tints.resize(headings_.size(), Tint::Faint);
    out += line(heading, columns, style) + "\n";
  }
  for (const Row& row : rows_) out += line(row, columns, style) + "\n";
  return out;
}

}  // namespace score::scout
