// Tables for people and for cut(1): stable columns, chosen by name, cut off only on a terminal.
#pragma once

#include "base/result.hpp"
#include "base/text.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

enum class Align { Left, Right };

// Rows of cells under headings; to_text aligns them.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings, std::vector<Align> alignment);

  void add(std::vector<std::string> cells);
  // Last column is cut to `width` columns with "…" if width > 0; without heading if asked.
  [[nodiscard]] std::string to_text(bool with_header, std::size_t width) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // [0] the headings
  std::vector<Align> alignment_;
};

// A column that can be asked for with -o KEY.
template <typename Item>
struct Column {
  std::string_view key;
  std::string_view heading;
  Align align = Align::Left;
  std::function<std::string(const Item&)> cell;
};

// The columns named in "a,b,c", in that order. Error: NotFound, with the names there are.
template <typename Item>
Result<std::vector<const Column<Item>*>> choose_columns(const std::vector<Column<Item>>& all,
                                                        std::string_view fields) {
  std::vector<const Column<Item>*> chosen;
  for (const auto field : split(fields, ',')) {
    const Column<Item>* found = nullptr;
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
TextTable make_table(const std::vector<const Column<Item>*>& columns, const Items& items) {
  std::vector<std::string> headings;
  std::vector<Align> alignment;
  for (const auto* column : columns) {
    headings.emplace_back(column->heading);
    alignment.push_back(column->align);
  }
  TextTable table(std::move(headings), std::move(alignment));
  for (const auto& item : items) {
    std::vector<std::string> cells;
    for (const auto* column : columns) cells.push_back(escape_terminal(column->cell(item), 65536));
    table.add(std::move(cells));
  }
  return table;
}

// Columns that a UTF-8 text takes on a terminal, one per character.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace score::scout
