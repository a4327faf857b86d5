// Reads the two ways in which users of squeue and sinfo choose columns: "%.18i %j" and
// "JobID:10,Name", and pads cells. Pure.
#pragma once

#include "base/result.hpp"
#include "base/text.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

// Field is a value that users name by a letter, by a name, or by both.
template <class Item>
struct Field {
  char letter = 0;          // 0: only by name
  std::string_view name{};  // in any case; empty: only by letter
  std::string_view heading{};
  std::string (*cell)(const Item&) = nullptr;
};

struct Column {
  std::string key;        // a letter or a name, as typed
  std::size_t width = 0;  // 0: as wide as the cell
  bool is_right = false;
  std::string before{};  // literal text
  std::string after{};
};

// Reads "%[[.]WIDTH]LETTER" with text around it. Errors: Malformed.
Result<std::vector<Column>> read_letters(std::string_view format);
// Reads "NAME[:[.][WIDTH][TEXT]],...". A column is 20 wide unless its width is given. Errors:
// Malformed.
Result<std::vector<Column>> read_names(std::string_view list);

// Returns the cell cut and padded to the column's width, with the text around it.
std::string padded(const Column& column, std::string_view cell);
bool equal_names(std::string_view a, std::string_view b);  // ignores case, '-' and '_'

// ChosenColumn has a column and the field that fills its cells.
template <class Item>
struct ChosenColumn {
  Column column;
  const Field<Item>* field = nullptr;
};

// Finds the field of each column. Errors: NotFound, which names the field and lists the known ones.
template <class Item>
Result<std::vector<ChosenColumn<Item>>> choose_fields(std::span<const Field<Item>> fields,
                                                      std::vector<Column> columns, bool by_letter) {
  std::vector<ChosenColumn<Item>> chosen;
  for (Column& column : columns) {
    const Field<Item>* found = nullptr;
    std::string known;
    for (const Field<Item>& field : fields) {
      if (by_letter ? field.letter != 0 : !field.name.empty()) {
        if (!known.empty()) known += by_letter ? "" : ",";
        known += by_letter ? std::string(1, field.letter) : std::string(field.name);
      }
      const bool is_it = by_letter ? field.letter != 0 && column.key[0] == field.letter
                                   : equal_names(field.name, column.key);
      if (is_it) found = &field;
    }
    if (found == nullptr) {
      return fail(Errc::NotFound, "unknown field {}{}; the fields are {}", by_letter ? "%" : "",
                  escape_terminal(column.key, 80), known);
    }
    chosen.push_back({std::move(column), found});
  }
  return chosen;
}

template <class Item>
std::string heading_line(const std::vector<ChosenColumn<Item>>& columns) {
  std::string line;
  for (const auto& [column, field] : columns) line += padded(column, field->heading);
  return line + "\n";
}

template <class Item>
std::string item_line(const std::vector<ChosenColumn<Item>>& columns, const Item& item) {
  std::string line;
  for (const auto& [column, field] : columns) {
    line += padded(column, escape_terminal(field->cell(item), 65'536));
  }
  return line + "\n";
}

}  // namespace score::scout::slurm
