#pragma once
// HostFacts describes this host as a node reports it when it connects. It is free of Asio.

#include "base/result.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::inline base {

struct HostFacts {
  std::string name;                  // gethostname, up to the first dot
  std::vector<std::uint32_t> cores;  // processors that this process may run on, ascending
  Bytes memory;                      // MemTotal
};

// Returns the value of a line "Key:   123 kB" from the text of /proc/meminfo. Errors: NotFound,
// Malformed.
[[nodiscard]] Result<Bytes> parse_meminfo(std::string_view text, std::string_view key);

// Returns a name of the monotonic clock that this process reads: the machine's boot and the time
// namespace, both as the kernel names them. It is empty if it is unknown. Clones of a virtual
// machine may have the same name but different clocks.
[[nodiscard]] std::string monotonic_clock_name();

// Asks the kernel for the facts. Errors: errno codes, with the query as context.
[[nodiscard]] Result<HostFacts> read_host_facts();

}  // namespace score::inline base
