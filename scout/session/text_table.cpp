#include "scout/session/text_table.hpp"

#include <algorithm>

namespace score::scout {

namespace {

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

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

TextTable::TextTable(std::vector<std::string> headings, std::vector<Align> alignment)
    : rows_{std::move(headings)}, alignment_(std::move(alignment)) {}

void TextTable::add(std::vector<std::string> cells) {
  for (auto& cell : cells) {
    if (cell.empty()) cell.assign(1, '-');  // every line has all columns, for awk
  }
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_text(bool with_header, std::size_t width) const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (std::size_t r = with_header ? 0 : 1; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(rows_[r][c]));
    }
  }
  std::string out;
  for (std::size_t r = with_header ? 0 : 1; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < widths.size(); ++c) {
      const auto& cell = rows_[r][c];
      const std::string pad(widths[c] - display_width(cell), ' ');
      line += c == 0 ? "" : "  ";
      line += alignment_[c] == Align::Right ? pad + cell : cell + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (width > 1 && display_width(line) > width) line = first_columns(line, width - 1) + "…";
    out += line + "\n";
  }
  return out;
}

}  // namespace score::scout
