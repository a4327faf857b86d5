#include "scout/setup/config_text.hpp"

#include "base/text.hpp"

#include <fmt/core.h>

#include <optional>
#include <vector>

namespace score::scout {
namespace {

// Tells whether the line is "key = ...", or shows it in a comment.
enum class LineKind { Other, Value, Comment };

LineKind kind_of(std::string_view line, std::string_view key) {
  std::string_view rest = trim(line);
  const bool is_comment = rest.starts_with('#');
  if (is_comment) rest = trim(rest.substr(1));
  if (!rest.starts_with(key)) return LineKind::Other;
  rest = trim(rest.substr(key.size()));
  if (!rest.starts_with('=')) return LineKind::Other;
  return is_comment ? LineKind::Comment : LineKind::Value;
}

struct KeyPlace {
  std::size_t line = 0;
  bool replaces = false;
};

// Returns nothing if the file has no such table.
std::optional<KeyPlace> find_place(const std::vector<std::string_view>& lines,
                                   std::string_view table, std::string_view key) {
  const std::string head = fmt::format("[{}]", table);
  std::optional<KeyPlace> place;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.starts_with('[')) {
      inside = line.substr(0, line.find('#')).starts_with(head);
      if (inside && !place) place = KeyPlace{i + 1, false};
      continue;
    }
    if (!inside) continue;
    const LineKind kind = kind_of(line, key);
    if (kind == LineKind::Value) return KeyPlace{i, true};
    if (kind == LineKind::Comment && !place->replaces) place = KeyPlace{i, true};
  }
  return place;
}

}  // namespace

std::string set_key(std::string_view text, std::string_view table, std::string_view key,
                    std::string_view value) {
  const std::string setting = fmt::format("{} = {}", key, value);
  std::vector<std::string_view> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  const std::string head = fmt::format("[{}]", table);
  const auto place = find_place(lines, table, key);
  if (!place) {
    lines.insert(lines.end(), {"", head, setting});
  } else if (place->replaces) {
    lines[place->line] = setting;
  } else {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(place->line), setting);
  }
  std::string made;
  for (const std::string_view line : lines) made.append(line).append("\n");
  return made;
}

std::string toml_string(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + "\"";
}

}  // namespace score::scout
