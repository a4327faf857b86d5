// Matches the capabilities that the provider offers with an application's hints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace score::pm::fi {

// Behaves as fi_getinfo(3). Returns 0 and at most one entry, or -FI_ENODATA if the hints ask for
// something that the provider does not offer.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info);

// Finds the library that has loaded this one, and returns the version of its interface, or 0 if it
// is not usable. That library allocates and frees fi_info, because its structs may be longer than
// those this library was built with. `caller` is an address in its code. This must be called first.
std::uint32_t find_host_library(const void* caller);

}  // namespace score::pm::fi
