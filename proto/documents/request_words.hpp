// Reads words of options of submissions that commands and documents share.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"

#include <string_view>

namespace score::proto {

// Reads "[B:]SIGNAL[@TIME]", the signal before a limit; TIME without a unit is in seconds. Errors:
// Malformed, NotFound (no such signal).
[[nodiscard]] Status parse_limit_signal(std::string_view text, wire::ResourceRequest& resources);

// Reads "NAME[:N],...". Errors: Malformed, TooLarge.
[[nodiscard]] Status parse_license_list(std::string_view text, wire::ResourceRequest& resources);

// Reads "N[@TIME]", the most leaf switches and how long to wait for them; TIME without a unit is in
// minutes, and 5 minutes if there is none. Errors: Malformed.
[[nodiscard]] Status parse_switches(std::string_view text, wire::ResourceRequest& resources);

}  // namespace score::proto
