#pragma once
// What this host is and has, as a node reports it when it connects. Asio-free.

#include "base/result.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

struct HostFacts {
  std::string name;                  // gethostname, up to the first dot
  std::vector<std::uint32_t> cores;  // processors this process may run on, rising
  Bytes memory;                      // MemTotal
  std::string boot_id;               // differs after each boot
  std::string kernel;                // uname's release
  std::string cgroup2_mount;         // empty: none, the fallback is SIGSTOP
};

// Value of a line "Key:   123 kB" in the text of /proc/meminfo. Errors: NotFound, Malformed.
[[nodiscard]] Result<Bytes> parse_meminfo(std::string_view text, std::string_view key);

// Processors in the kernel's notation "0-3,8,10-11" (cpuset and sysfs files), rising, without
// repeats.
// "" gives none. Errors: Malformed, TooLarge (a number of 65,536 or more).
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

// Which monotonic clock this process reads: the machine's boot and the time namespace, both as the
// kernel names them. Empty: not known. Clones of a virtual machine may have the same name, and
// clocks of their own.
[[nodiscard]] std::string monotonic_clock_name();

// Asks the kernel. Errors: errno codes, with what was asked.
[[nodiscard]] Result<HostFacts> read_host_facts();

}  // namespace score::inline base
