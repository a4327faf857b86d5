#pragma once
// SCORE_ASSERT: for bugs in this project only. It is on in release builds and aborts; systemd
// starts us again and running jobs survive that. Nothing a peer, a user or a file says may reach an
// assert.

#include <fmt/core.h>

#include <source_location>
#include <string_view>

namespace score::inline base {

// Writes one line to stderr and aborts. Called by SCORE_ASSERT.
[[noreturn]] void assert_failed(const char* condition, std::string_view context,
                                const std::source_location& where);

}  // namespace score::inline base

// SCORE_ASSERT(condition) or SCORE_ASSERT(condition, "job={} state={}", job, state)
#define SCORE_ASSERT(condition, ...)                                                              \
  (static_cast<bool>(condition) ? static_cast<void>(0)                                            \
                                : ::score::assert_failed(#condition, fmt::format("" __VA_ARGS__), \
                                                         std::source_location::current()))
