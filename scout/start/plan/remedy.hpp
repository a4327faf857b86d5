// What a user can do about the failure of a link.
#pragma once

#include <string>
#include <string_view>

namespace score::scout {

// The words of ssh or srun with a remedy appended, where one is known. `target`: as for ssh.
std::string with_remedy(std::string_view words, std::string_view target);

}  // namespace score::scout
