// Makes the two programs that enforce the bounds of rings.
#pragma once

#include "pmlib/wire/ebpf_program.hpp"

namespace score::ring_guard {

// Runs before setsockopt(2), for every socket of a cgroup, and fails with EPERM for marked packet
// sockets. It does not see 32-bit system calls, so nothing may depend on it alone.
pm::EbpfProgram refuse_options();

// Runs when a frame leaves an interface. Drops frames of marked sockets that are outside their
// Bounds in `table`, and those of marked sockets that have none.
pm::EbpfProgram drop_foreign(int table);

}  // namespace score::ring_guard
