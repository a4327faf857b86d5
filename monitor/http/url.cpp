#include "monitor/http/url.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <optional>

namespace score::monitor {

namespace {

constexpr std::size_t kMaxNames = 32;

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

Result<std::string> decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto high = i + 2 < text.size() ? digit_of(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? digit_of(text[i + 2]) : std::nullopt;
      if (!high || !low) return fail(Errc::Malformed, "a broken %-escape");
      c = static_cast<char>(*high * 16 + *low);
      i += 2;
    } else if (c == '+' && plus_is_blank) {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return fail(Errc::Malformed, "a control character");
    }
    out += c;
  }
  return out;
}

bool is_clean(std::string_view path) {
  if (path.find('\\') != path.npos) return false;
  const auto parts = split(path.substr(1), '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    if (parts[i] == "." || parts[i] == ".." || (parts[i].empty() && !is_last)) return false;
  }
  return true;
}

}  // namespace

Result<Query> parse_query(std::string_view text) {
  Query query;
  if (text.empty()) return query;
  for (const auto part : split(text, '&')) {
    const auto equals = part.find('=');
    auto name = decode(part.substr(0, equals), true);
    auto value = decode(equals == part.npos ? "" : part.substr(equals + 1), true);
    if (!name) return name.error();
    if (!value) return value.error();
    const bool is_known = std::any_of(query.begin(), query.end(),
                                      [&](const auto& one) { return one.first == *name; });
    if (is_known || query.size() >= kMaxNames) return fail(Errc::Malformed, "a name twice");
    query.emplace_back(*std::move(name), *std::move(value));
  }
  return query;
}

Result<RequestTarget> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return fail(Errc::Malformed, "no path");
  target = target.substr(0, target.find('#'));
  const auto mark = target.find('?');
  auto path = decode(target.substr(0, mark), false);
  if (!path) return path.error();
  if (!is_clean(*path)) return fail(Errc::Malformed, "a path with .., // or \\");
  auto query = parse_query(mark == target.npos ? "" : target.substr(mark + 1));
  if (!query) return query.error();
  RequestTarget made;
  made.path = *std::move(path);
  made.query = *std::move(query);
  return made;
}

}  // namespace score::monitor
