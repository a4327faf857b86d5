#pragma once
// Which optional parts this node has, as a job of this user sees it.

#include <string_view>

namespace score::probe {

// name: of base::kOptionalParts. provider: folder of libpm-fi.so; empty: not installed.
bool has_part(std::string_view name, std::string_view provider);

}  // namespace score::probe
