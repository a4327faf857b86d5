// The capabilities that the provider offers, matched against an application's hints.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace score::pm::fi {

// As fi_getinfo(3). 0 and at most one entry, or -FI_ENODATA if something was asked for that is not
// offered.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info);

// The library that has loaded this one, which allocates and frees fi_info: its structs may be
// longer than those this library was built with. `caller` is an address in its code. Called first.
// Returns the version of its interface, 0 if it is not usable.
std::uint32_t find_host_library(const void* caller);

}  // namespace score::pm::fi
