// CRC-32C (Castagnoli, RFC 3720 appendix B.4), with the processor's instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace score::pm {

// The checksum of `length` bytes at `data`, continued from `crc` (0 to start):
// crc32c(crc32c(0, a), b) is the checksum of a followed by b.
std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t length);

// crc32c(crc, from, length), copying the bytes to `to` on the way; the two do not overlap.
std::uint32_t crc32c_copy(std::uint32_t crc, void* to, const void* from, std::size_t length);

// The same as crc32c(), bit by bit: the reference for the test.
std::uint32_t crc32c_reference(std::uint32_t crc, const void* data, std::size_t length);

}  // namespace score::pm
