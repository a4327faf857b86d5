#pragma once
// The facts that both daemons report of their host.

#include "proto/client.pb.h"

#include <string>
#include <string_view>

namespace score::facts {

// Of this program, such as "1.2.0".
[[nodiscard]] std::string_view release();

// Release, clock and user; no files yet.
[[nodiscard]] wire::HostFacts of_this_host();

// Mode and owner of the file as they are now, or why they cannot be had.
void add_file(wire::HostFacts& facts, wire::FileFact::Role role, const std::string& path);

// Where a program of this installation is: beside this one, or in ../libexec/scored. Empty:
// nowhere.
[[nodiscard]] std::string find_helper(const std::string& name);

}  // namespace score::facts
