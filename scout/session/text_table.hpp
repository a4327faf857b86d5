// Prints tables for people and for cut(1): columns are stable, selected by name, and cut off only
// on a terminal.
#pragma once

#include "base/result.hpp"
#include "base/text.hpp"
#include "scout/session/command.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

enum class Align : std::uint8_t { Left, Right };
// Determines how a terminal with colours shows a cell.
enum class Tint : std::uint8_t { None, Good, Wait, Bad, Faint };

struct Heading {
  std::string text;
  Align align = Align::Left;
  bool may_shrink = false;  // on a narrow terminal, before the end of the line is cut off
};

struct TableStyle {
  bool with_header = true;
  std::size_t width = 0;  // columns of the terminal; 0: nothing is cut
  bool color = false;
};

// Returns the style that the options and standard output require.
[[nodiscard]] TableStyle table_style(const CommonOptions& options);

// Holds rows of cells under headings; to_text aligns them.
class TextTable {
 public:
  explicit TextTable(std::vector<Heading> headings) : headings_(std::move(headings)) {}

  // Adds a row. `tints` has one entry per cell; cells without an entry have no tint.
  void add(std::vector<std::string> cells, std::vector<Tint> tints = {});
  // If a line is wider than the terminal, columns that may shrink are cut first, then the end of
  // the line. "…" marks each cut.
  [[nodiscard]] std::string to_text(const TableStyle& style) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<Tint> tints;
  };

  [[nodiscard]] std::vector<std::size_t> widths(const TableStyle& style) const;
  [[nodiscard]] std::string line(const Row& row, const std::vector<std::size_t>& widths,
                                 const TableStyle& style) const;

  std::vector<Heading> headings_;
  std::vector<Row> rows_;
};

// Describes a column that users select with -o KEY.
template <typename Item>
struct TableColumn {
  std::string_view key;
  std::string_view heading;
  Align align = Align::Left;
  std::function<std::string(const Item&)> cell;
  bool may_shrink = false;
  std::function<Tint(const Item&)> tint{};
};

// Returns the columns named in "a,b,c", in that order. Errors: NotFound, which lists all columns.
template <typename Item>
Result<std::vector<const TableColumn<Item>*>> choose_columns(
    const std::vector<TableColumn<Item>>& all, std::string_view fields) {
  std::vector<const TableColumn<Item>*> chosen;
  for (const auto field : split(fields, ',')) {
    const TableColumn<Item>* found = nullptr;
    for (const auto& column : all) {
      if (column.key == trim(field)) found = &column;
    }
    if (found == nullptr) {
      std::string keys;
      for (const auto& column : all) keys += (keys.empty() ? "" : ",") + std::string(column.key);
      return fail(Errc::NotFound, "-o: unknown column '{}'; the columns are {}",
                  escape_terminal(field, 80), keys);
    }
    chosen.push_back(found);
  }
  return chosen;
}

template <typename Item, typename Items>
TextTable make_table(const std::vector<const TableColumn<Item>*>& columns, const Items& items) {
  std::vector<Heading> headings;
  for (const auto* column : columns) {
    headings.push_back({std::string(column->heading), column->align, column->may_shrink});
  }
  TextTable table(std::move(headings));
  for (const auto& item : items) {
    std::vector<std::string> cells;
    std::vector<Tint> tints;
    for (const auto* column : columns) {
      cells.push_back(escape_terminal(column->cell(item), 65536));
      tints.push_back(column->tint ? column->tint(item) : Tint::None);
    }
    table.add(std::move(cells), std::move(tints));
  }
  return table;
}

// Returns the width of a UTF-8 text on a terminal, one column per character.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace score::scout
