// The two programs that hold rings to their bounds.
#pragma once

#include "pmlib/wire/ebpf_program.hpp"

namespace score::ring_guard {

// Before setsockopt(2), for every socket of a cgroup: EPERM for marked packet sockets. A 32-bit
// system call is not seen here, so nothing may depend on this alone.
pm::EbpfProgram refuse_options();

// On the way out of an interface: drops frames of marked sockets that are beyond their Bounds in
// `table`, and those of marked sockets that have none.
pm::EbpfProgram drop_foreign(int table);

}  // namespace score::ring_guard
