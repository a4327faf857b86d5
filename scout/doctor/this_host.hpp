// Checks this host when no head answers on it: its files, and the connection to its head.
#pragma once

#include "scout/doctor/finding.hpp"

#include <string>
#include <vector>

namespace score::scout {

// Uses the packaged configuration at `path`. A missing or unreadable file is reported. Tries a TCP
// connection to the head of [node].
std::vector<Finding> check_this_host(const std::string& path);

}  // namespace score::scout
