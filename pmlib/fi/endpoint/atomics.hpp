// Implements libfabric's atomic operations on plain memory. They are atomic because the memory's
// owner carries all of them out, one after the other.
#pragma once

#include "pmlib/fi/link/wire.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <span>

namespace score::pm::fi {

// Returns the bytes of one element; 0 if this operation does not exist for the type and form.
std::size_t atomic_bytes(AtomicForm form, fi_op operation, fi_datatype datatype);

// Applies the operation, which must exist, to each element of `memory`. `operands` and `compare`
// have the same length where the operation uses them. The memory need not be aligned.
void apply_atomic(fi_op operation, fi_datatype datatype, std::span<std::byte> memory,
                  std::span<const std::byte> operands, std::span<const std::byte> compare);

}  // namespace score::pm::fi
