// How a line of a file becomes words.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Words as a shell splits them: blanks, '...', "...", backslashes; "#" begins a comment. Errors:
// Malformed: a quote is not closed.
Result<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace score::scout
