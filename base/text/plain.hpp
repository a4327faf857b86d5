#pragma once
// Plain words for people (counts, typing errors, the text of errors) and text that is valid UTF-8.

#include "base/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace score::inline base {

// "1 node", "4 nodes".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);

// The word of `known` that is meant: at most two letters wrong, and fewer than half of them; empty:
// none is near.
[[nodiscard]] std::string nearest_word(std::string_view word, std::span<const std::string> known);

// Returns the line for a user: the context alone where the code is one of Errc, because the context
// then names the fault; else the error's message().
[[nodiscard]] std::string plain_text(const Error& error);

// The text with U+FFFD for each byte that is not UTF-8. Everything else stays, control characters
// too.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace score::inline base
