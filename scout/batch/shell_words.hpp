// Splits a line of a file into words.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Splits text as a shell does: blanks, '...', "...", backslashes; "#" begins a comment. Errors:
// Malformed if a quote is not closed.
Result<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace score::scout
