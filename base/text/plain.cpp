#include "base/text/plain.hpp"

#include "base/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace score::inline base {

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
  if (count != 1 && !plural.empty()) return fmt::format("{} {}", count, plural);
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string range_words(std::string_view least, std::string_view most) {
  return fmt::format("from {} to {}", least, most);
}

namespace {

// Counts insertions, deletions, replacements and swaps of adjacent letters (optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t other = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kMostLetters = 64;
  constexpr std::size_t kMostWrong = 2;
  std::string best;
  std::size_t least = kMostWrong + 1;
  if (word.size() > kMostLetters) return best;
  for (const std::string& candidate : known) {
    const std::size_t wrong = edit_distance(word, candidate);
    if (wrong >= least || 2 * wrong >= std::min(word.size(), candidate.size())) continue;
    least = wrong;
    best = candidate;
  }
  return best;
}

std::string plain_text(const Error& error) {
  const bool is_said = !error.context().empty() && error.code().category() == errc_category();
  return is_said ? error.context() : error.message();
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace score::inline base
