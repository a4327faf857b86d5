// This file computes CRC-32C (Castagnoli, RFC 3720 appendix B.4). It uses the processor's
// instruction where available.
#pragma once

#include <cstddef>
#include <cstdint>

namespace score::pm {

// Returns the checksum of `length` bytes at `data`, continued from `crc` (0 to start):
// crc32c(crc32c(0, a), b) is the checksum of a followed by b.
std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t length);

// Returns crc32c(crc, from, length) and copies the bytes to `to` in the same pass; the ranges must
// not overlap.
std::uint32_t crc32c_copy(std::uint32_t crc, void* to, const void* from, std::size_t length);

// Returns the same as crc32c(), computed bit by bit; it is the reference for the test.
std::uint32_t crc32c_reference(std::uint32_t crc, const void* data, std::size_t length);

}  // namespace score::pm
