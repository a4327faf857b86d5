#pragma once
// SCORE_ASSERT is for bugs of this project only. It is on in release builds and aborts the process;
// systemd restarts it, and running jobs survive that. Input from a peer, a user or a file must
// never reach an assert.

#include <fmt/core.h>

#include <source_location>
#include <string_view>

namespace score::inline base {

// Writes one line to stderr and aborts. SCORE_ASSERT calls it.
[[noreturn]] void assert_failed(const char* condition, std::string_view context,
                                const std::source_location& where);

}  // namespace score::inline base

// Use it as SCORE_ASSERT(condition) or SCORE_ASSERT(condition, "job={} state={}", job, state).
#define SCORE_ASSERT(condition, ...)                                                              \
  (static_cast<bool>(condition) ? static_cast<void>(0)                                            \
                                : ::score::assert_failed(#condition, fmt::format("" __VA_ARGS__), \
                                                         std::source_location::current()))
