#pragma once
// Collects the facts that both daemons report of their host.

#include "proto/client.pb.h"

#include <string>
#include <string_view>

namespace score::facts {

// Returns the release of this program, such as "1.2.0".
[[nodiscard]] std::string_view release();

// Fills in release, clock and user, but no files.
[[nodiscard]] wire::HostFacts of_this_host();

// Adds mode and owner of the file as they are now, or the reason why they cannot be read.
void add_file(wire::HostFacts& facts, wire::FileFact::Role role, const std::string& path);

}  // namespace score::facts
