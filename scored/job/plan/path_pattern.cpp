#include "scored/job/plan/path_pattern.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace score::shepherd {

namespace {

constexpr std::size_t kMaxPadding = 10;

}  // namespace

base::Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values) {
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
    const char letter = at < pattern.size() ? pattern[at] : '\0';
    if (letter == 'j') {
      out += fmt::format("{:0{}}", values.job, width);
    } else if (letter == 't') {
      out += fmt::format("{:0{}}", values.rank, width);
    } else if (letter == 'N') {
      out += values.node;
    } else if (letter == '%') {
      out += '%';
    } else {
      return base::fail(base::Errc::Malformed, "file name {}: {} is not %j, %t, %N or %%",
                        base::quote_value(pattern),
                        base::quote_value(pattern.substr(start, at + 1 - start)));
    }
  }
  return out;
}

PatternScope scope_of(std::string_view pattern) {
  const PatternValues base{.job = 0, .rank = 0, .node = "a"};
  const PatternValues other_rank{.job = 0, .rank = 1, .node = "a"};
  const PatternValues other_node{.job = 0, .rank = 0, .node = "b"};
  const auto name = expand_pattern(pattern, base);
  if (!name) return {};
  return {.per_rank = *expand_pattern(pattern, other_rank) != *name,
          .per_node = *expand_pattern(pattern, other_node) != *name};
}

}  // namespace score::shepherd
