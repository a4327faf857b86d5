#pragma once
// Determines which optional parts this node has, as a job of this user sees them.

#include <string_view>

namespace score::probe {

// The name must be in base::kOptionalParts. provider: folder of libpm-fi.so; empty if it is not
// installed.
bool has_part(std::string_view name, std::string_view provider);

}  // namespace score::probe
