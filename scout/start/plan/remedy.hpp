// Adds advice for the user to the failure of a link.
#pragma once

#include <string>
#include <string_view>

namespace score::scout {

// Returns the message of ssh or srun, followed by a remedy if one is known. `target` is the host
// for ssh.
std::string with_remedy(std::string_view words, std::string_view target);

}  // namespace score::scout
