#include "base/text/path_pattern.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <optional>

namespace score::inline base {

namespace {

constexpr std::size_t kMaxPadding = 10;

std::string as_file_name(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '/', '_');
  return out;
}

std::string padded(std::uint64_t number, std::size_t width) {
  return fmt::format("{:0{}}", number, width);
}

std::string step_of(const PatternValues& values, std::size_t width) {
  return padded(parse_number<std::uint64_t>(values.step).value_or(0), width);
}

// Returns the value of a letter, or nothing if the letter has no meaning.
std::optional<std::string> value_of(char letter, std::size_t width, const PatternValues& values) {
  switch (letter) {
    case 'j':
    case 'A':
      return padded(values.job, width);
    case 'J':
      return padded(values.job, width) +
             (values.step.empty() ? std::string() : "." + std::string(values.step));
    case 'a':
      return padded(0, width);
    case 's':
      return step_of(values, width);
    case 't':
      return padded(values.rank, width);
    case 'n':
      return padded(values.node_index, width);
    case 'N':
      return std::string(values.node);
    case 'u':
      return as_file_name(values.user);
    case 'x':
      return as_file_name(values.job_name);
    case '%':
      return std::string("%");
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '%') {
      out += pattern[at];
      continue;
    }
    std::size_t width = 0;
    const std::size_t start = at++;
    for (; at < pattern.size() && pattern[at] >= '0' && pattern[at] <= '9'; ++at) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[at] - '0'), kMaxPadding);
    }
    const auto value = value_of(at < pattern.size() ? pattern[at] : '\0', width, values);
    if (!value) {
      return fail(Errc::Malformed,
                  "file name {}: {} is not one of %j %J %A %a %s %t %n %N %u %x %%",
                  quote_value(pattern), quote_value(pattern.substr(start, at + 1 - start)));
    }
    out += *value;
  }
  return out;
}

Status check_pattern(std::string_view pattern) {
  const auto name = expand_pattern(pattern, {});
  if (!name) return name.error();
  return {};
}

PatternScope scope_of(std::string_view pattern) {
  PatternValues one;
  one.node = "a";
  PatternValues other_rank = one;
  other_rank.rank = 1;
  PatternValues other_node = one;
  other_node.node = "b";
  other_node.node_index = 1;
  const auto name = expand_pattern(pattern, one);
  if (!name) return {};
  return {.per_rank = *expand_pattern(pattern, other_rank) != *name,
          .per_node = *expand_pattern(pattern, other_node) != *name};
}

std::string parent_directory(std::string_view path) {
  const auto last = path.find_last_not_of('/');
  const auto slash = path.substr(0, last == path.npos ? 0 : last + 1).rfind('/');
  if (slash == path.npos) return path.starts_with('/') ? "/" : ".";
  const auto end = path.substr(0, slash).find_last_not_of('/');
  return end == path.npos ? "/" : std::string(path.substr(0, end + 1));
}

}  // namespace score::inline base
