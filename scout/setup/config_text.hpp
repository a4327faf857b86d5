// Sets keys in the text of a configuration file and leaves every other line as it is, so comments
// and the administrator's changes stay.
#pragma once

#include <string>
#include <string_view>

namespace score::scout {

// Sets the key; `value` is in TOML syntax. Replaces the line of the key in [table], else the first
// comment there that shows it ("# key = ..."), else adds a line after the table's head, else adds
// the table at the end. A second call with the same value changes nothing.
std::string set_key(std::string_view text, std::string_view table, std::string_view key,
                    std::string_view value);

// Returns the text as a TOML string.
std::string toml_string(std::string_view text);

}  // namespace score::scout
