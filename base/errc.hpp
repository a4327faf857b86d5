#pragma once
// Errc lists the expected failures of base's own functions and of small helpers in other folders. A
// folder with failures of its own has its own enum and category. Failures that the kernel reports
// are errno values (errno_code).

#include <system_error>

namespace score::inline base {

enum class Errc {
  Malformed = 1,  // text or bytes that do not follow their grammar
  TooLarge,       // beyond a limit of base/limits.hpp or of the caller
  NotFound,       // no such thing
  Exists,         // already there
  Denied,         // not allowed
  Unsupported,    // this host or build cannot do it
  WrongState,     // not now
  Busy,           // a full queue or table: try again later
  Timeout,        // not in time
  Cancelled,      // given up on request
  Closed,         // the other side is gone
};

// Returns the only instance, because categories are compared by address.
const std::error_category& errc_category() noexcept;
std::error_code make_error_code(Errc code) noexcept;

// Returns an errno value as an error_code that compares with std::errc.
inline std::error_code errno_code(int value) noexcept {
  return {value, std::generic_category()};
}

}  // namespace score::inline base

template <>
struct std::is_error_code_enum<score::Errc> : std::true_type {};
