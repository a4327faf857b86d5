#include "scout/batch/shell_words.hpp"

namespace score::scout {

Result<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  bool is_open = false;  // the last word continues
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == '\0' && !is_open && c == '#') break;
    if (c == quote) {
      quote = '\0';
      continue;
    }
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\r')) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
      continue;
    }
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) c = text[++i];
    words.back() += c;
  }
  if (quote != '\0') return fail(Errc::Malformed, "a quote ({}) is not closed", quote);
  return words;
}

}  // namespace score::scout
