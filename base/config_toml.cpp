#include <stdexcept>

namespace {

struct ParserAssertion : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

// toml++ 3.3 asserts on some malformed files that it should refuse; a file must not end a daemon.
#define TOML_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : throw ParserAssertion("not TOML: " #condition))
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // in functions where the assertion does hold
#include <toml++/toml.h>
#pragma GCC diagnostic pop

#include "base/config_tree.hpp"

// toml++ is half a megabyte of templates: it is parsed here once, into a tree of our own, and seen
// nowhere else.

namespace score::inline base::detail {

namespace {

// Enough for any file we understand; the parser itself is recursive too.
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxLineBytes = 16'384;

// "a.a.a. ..." on one line nests as deep as it is long.
bool has_long_line(std::string_view text) {
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kMaxLineBytes) return true;
    begin = end + 1;
  }
  return false;
}

// False if it is nested too deep.
bool convert(const toml::node& from, ConfigNode& to, int depth) {
  if (depth > kMaxDepth) return false;
  to.line = from.source().begin.line;
  if (const auto* text = from.as_string()) {
    to.value = text->get();
  } else if (const auto* integer = from.as_integer()) {
    to.value = integer->get();
  } else if (const auto* number = from.as_floating_point()) {
    to.value = number->get();
  } else if (const auto* boolean = from.as_boolean()) {
    to.value = boolean->get();
  } else if (const auto* array = from.as_array()) {
    auto& items = to.value.emplace<ConfigArray>(array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (!convert(*array->get(i), items[i], depth + 1)) return false;
    }
  } else if (const auto* table = from.as_table()) {
    auto& members = to.value.emplace<ConfigTable>();
    for (const auto& [key, value] : *table) {
      ConfigNode& member = members[std::string(key.str())];
      if (!convert(value, member, depth + 1)) return false;
      if (key.source().begin.line != 0) member.line = key.source().begin.line;
    }
  }
  return true;
}

}  // namespace

Result<ConfigNode> parse_toml(std::string_view text, const std::string& name) {
  if (has_long_line(text)) return fail(Errc::Malformed, "{}: a line is too long", name);
  ConfigNode root;
  try {
    if (!convert(toml::parse(text, name), root, 0)) {
      return fail(Errc::Malformed, "{}: nested deeper than {}", name, kMaxDepth);
    }
  } catch (const toml::parse_error& error) {
    return fail(Errc::Malformed, "{}:{}: {}", name, error.source().begin.line, error.description());
  } catch (const ParserAssertion& error) {
    return fail(Errc::Malformed, "{}: {}", name, error.what());
  }
  root.line = 1;
  return root;
}

}  // namespace score::inline base::detail
