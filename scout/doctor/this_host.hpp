// What this host can say when no head answers on it: its files, and the way to its head.
#pragma once

#include "scout/doctor/finding.hpp"

#include <string>
#include <vector>

namespace score::scout {

// By the packaged configuration at `path`; a file that is missing or may not be read is said so.
// Tries a TCP connection to the head of [node].
std::vector<Finding> look_at_this_host(const std::string& path);

}  // namespace score::scout
