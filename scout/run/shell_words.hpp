// How a line of a file becomes words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Words as a shell parts them: blanks, quotes and backslashes; # begins a comment. Nothing: a quote
// is not closed.
std::optional<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace score::scout
