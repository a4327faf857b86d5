// Sets keys in the text of a configuration file and leaves every other line as it is: comments and
// what an administrator wrote stay.
#pragma once

#include <string>
#include <string_view>

namespace score::scout {

// `value` as TOML spells it. Replaces the line of the key in [table], else the first comment there
// that shows it ("# key = ..."), else adds a line after the table's head, else the table at the
// end. Setting the same twice changes nothing.
std::string set_key(std::string_view text, std::string_view table, std::string_view key,
                    std::string_view value);

// A TOML string of the text.
std::string toml_string(std::string_view text);

}  // namespace score::scout
