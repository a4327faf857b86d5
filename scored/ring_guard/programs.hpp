// The programs that hold rings to their bounds, as instructions of eBPF: there are two short ones,
// and a compiler for them would be one more thing to build with.
#pragma once

#include <cstdint>
#include <linux/bpf.h>
#include <vector>

namespace score::ring_guard {

using Program = std::vector<bpf_insn>;

// Before setsockopt(2), for every socket of a cgroup: EPERM for marked packet sockets. A 32-bit
// system call is not seen here, so nothing may depend on this alone.
Program refuse_options();

// On the way out of an interface: drops frames of marked sockets that are beyond their Bounds in
// `table`, and those of marked sockets that have none.
Program drop_foreign(int table);

}  // namespace score::ring_guard
