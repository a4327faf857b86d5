#pragma once
// Determines which optional parts this node has, as a job of this user sees them.

#include <string>
#include <string_view>
#include <vector>

namespace score::probe {

// The name must be in base::kOptionalParts. provider: folder of libpm-fi.so; empty if it is not
// installed.
bool has_part(std::string_view name, std::string_view provider);

// Returns the paths of programs that run as the users of jobs, hold something of the system, and
// can be read by this user, who does not own them. Such a program can be traced by other processes
// of the user until it forbids that itself.
std::vector<std::string> readable_programs();

}  // namespace score::probe
