#pragma once
// This is the only decoder of UTF-8. It serves text that is escaped, cut or made valid. The
// implementation is in base/text.cpp.

#include <cstddef>
#include <string_view>

namespace score::inline base {

// Returns the length of the well-formed UTF-8 sequence at the start of `text`, which is not empty
// (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF), or 0.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace score::inline base
