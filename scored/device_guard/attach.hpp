#pragma once
// The program in force for a cgroup and all below it. As root.

#include "base/result.hpp"
#include "pmlib/wire/ebpf_program.hpp"

#include <string>

namespace score::device_guard {

// Attaches the program, then removes that of an earlier call; programs of others stay, and deny as
// before. `mark`: text of the table, readable by read_device_mark(). Errors: errno codes with the
// step.
[[nodiscard]] Status enforce(const std::string& cgroup, const pm::EbpfProgram& program,
                             const std::string& mark);

// Removes what enforce() has done; nothing if there is no mark.
[[nodiscard]] Status lift(const std::string& cgroup);

}  // namespace score::device_guard
