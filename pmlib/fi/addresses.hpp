// Resolves the addresses of an fi_info: those that a caller of fi_getinfo(3) names, and the
// process's own.
#pragma once

#include "pmlib/fi/peers/name.hpp"

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace score::pm::fi {

// Holds the arguments of fi_getinfo(3) that name an address.
struct AddressQuery {
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;
  const fi_info* hints = nullptr;
};

// Always fills in src_addr, and dest_addr if the query names one, both in `info.addr_format`.
// Returns 0; -FI_ENODATA if a name leads to no address of this provider; -FI_EINVAL if the hints
// contain bytes that are not a name; or -FI_ENOMEM.
int fill_addresses(fi_info& info, const AddressQuery& query);

// Reads an address of `length` bytes in the format of an fi_info: 32 bytes, or a string. Returns
// false if the bytes are not an address in that format.
bool read_address(std::uint32_t format, const void* address, std::size_t length, Name& name);

}  // namespace score::pm::fi
