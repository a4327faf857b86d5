#pragma once
// Puts a program in force for a cgroup and all cgroups below it. Needs root.

#include "base/result.hpp"
#include "pmlib/wire/ebpf_program.hpp"

#include <string>

namespace score::device_guard {

// Attaches the program, then removes the one of an earlier call. Programs of other owners stay and
// deny as before. `mark` is the text of the table, readable by read_device_mark(). Errors: errno
// codes with the step.
[[nodiscard]] Status enforce(const std::string& cgroup, const pm::EbpfProgram& program,
                             const std::string& mark);

// Removes the programs and the mark of enforce(). Does nothing if there is no mark.
[[nodiscard]] Status lift(const std::string& cgroup);

}  // namespace score::device_guard
