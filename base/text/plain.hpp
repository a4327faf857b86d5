#pragma once
// Provides text for people (counts, typing errors, errors) and makes text valid UTF-8.

#include "base/result.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace score::inline base {

// Returns the count with its noun: "1 node", "4 nodes".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun,
                                  std::string_view plural = {});

// Returns the words for a range of numbers, both ends included: "from 1 to 4096".
[[nodiscard]] std::string range_words(std::string_view least, std::string_view most);

// Returns the word of `known` that was probably meant: at most two letters differ, and fewer than
// half of them. Returns "" if no word is that similar.
[[nodiscard]] std::string nearest_word(std::string_view word, std::span<const std::string> known);

// Returns the line for a user: the context alone where the code is one of Errc, because the context
// then names the fault; else the error's message().
[[nodiscard]] std::string plain_text(const Error& error);

// Returns the text with U+FFFD for each byte that is not UTF-8. Everything else stays, including
// control characters.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace score::inline base
