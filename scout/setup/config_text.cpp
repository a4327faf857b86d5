#include "scout/setup/config_text.hpp"

#include "base/text.hpp"

#include <fmt/core.h>

#include <optional>
#include <vector>

namespace score::scout {
namespace {

// Tells whether the line is "key = ...", or shows it in a comment.
enum class Kind { Other, Value, Comment };

Kind kind_of(std::string_view line, std::string_view key) {
  std::string_view rest = trim(line);
  const bool is_comment = rest.starts_with('#');
  if (is_comment) rest = trim(rest.substr(1));
  if (!rest.starts_with(key)) return Kind::Other;
  rest = trim(rest.substr(key.size()));
  if (!rest.starts_with('=')) return Kind::Other;
  return is_comment ? Kind::Comment : Kind::Value;
}

struct Place {
  std::size_t line = 0;
  bool replaces = false;
};

// Returns nothing if the file has no such table.
std::optional<Place> find_place(const std::vector<std::string_view>& lines, std::string_view table,
                                std::string_view key) {
  const std::string head = fmt::format("[{}]", table);
  std::optional<Place> place;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.starts_with('[')) {
      inside = line.substr(0, line.find('#')).starts_with(head);
      if (inside && !place) place = Place{i + 1, false};
      continue;
    }
    if (!inside) continue;
    const Kind kind = kind_of(line, key);
    if (kind == Kind::Value) return Place{i, true};
    if (kind == Kind::Comment && !place->replaces) place = Place{i, true};
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
