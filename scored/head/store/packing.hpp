#pragma once
// These functions pack lists into the value of one column. Unpacking returns what was packed; other
// bytes give some list, never an error.

#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/model/usage.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

[[nodiscard]] std::string pack(std::span<const std::uint32_t> numbers);
[[nodiscard]] std::vector<std::uint32_t> unpack(std::string_view bytes);
[[nodiscard]] std::string pack_cores(const std::vector<std::vector<std::uint32_t>>& cores);
[[nodiscard]] std::vector<std::vector<std::uint32_t>> unpack_cores(std::string_view bytes);
[[nodiscard]] std::string pack_names(const std::vector<std::string>& names);  // without '\n'
[[nodiscard]] std::vector<std::string> unpack_names(std::string_view text);
// Packs one line per node, as base::format_shares() writes it; nothing if no node has units.
[[nodiscard]] std::string pack_units(const std::vector<std::vector<base::GenericShare>>& units);
[[nodiscard]] std::vector<std::vector<base::GenericShare>> unpack_units(std::string_view text);
// Packs a JSON object, so that SQL can read it: json_extract(usage, '$.cpu_user_s').
[[nodiscard]] std::string pack_usage(const base::Usage& usage);
[[nodiscard]] std::optional<base::Usage> unpack_usage(std::string_view text);  // none: empty
[[nodiscard]] std::string pack_request(const RequestId& request);
[[nodiscard]] RequestId unpack_request(std::string_view bytes);  // none unless 16 bytes

}  // namespace score::head
