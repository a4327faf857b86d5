// libfabric's atomic operations on plain memory. They are atomic because the memory's owner carries
// all of them out, one after the other.
#pragma once

#include "pmlib/fi/link/wire.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <span>

namespace score::pm::fi {

// Bytes of one element; 0 if there is no such operation on this type in this form.
std::size_t atomic_bytes(AtomicForm form, fi_op operation, fi_datatype datatype);

// Applies the operation, which exists, to each element of `memory`. `operands` and `compare` are of
// the same length where the operation uses them. No alignment is needed.
void apply_atomic(fi_op operation, fi_datatype datatype, std::span<std::byte> memory,
                  std::span<const std::byte> operands, std::span<const std::byte> compare);

}  // namespace score::pm::fi
