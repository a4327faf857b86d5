#pragma once
// Makes the request that brings a notice to a webhook, and reads the head of the reply. These
// functions are pure; the reply's body is never read.

#include "base/result.hpp"
#include "scored/head/config/notify_config.hpp"
#include "scored/head/notices/notice.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace score::head {

inline constexpr std::size_t kMaxReplyHead = 16 * 1024;  // bytes

// `token` is sent as a bearer token; empty: none.
[[nodiscard]] std::string web_request(const WebAddress& address, const Notice& notice,
                                      std::string_view token);

// Reads what has come so far. Returns the status code of the reply, or nullopt if its status line
// is not complete. A status of 1xx is no reply; the next one is awaited. Errors: Malformed,
// TooLarge.
[[nodiscard]] Result<std::optional<int>> read_status(std::string_view bytes);

// Returns whether a service that replied with this status may accept the same notice later.
[[nodiscard]] bool is_worth_a_retry_after(int status);

}  // namespace score::head
