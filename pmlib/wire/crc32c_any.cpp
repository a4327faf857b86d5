// For processors without code of their own.
#include "pmlib/wire/crc32c.hpp"
#include "pmlib/wire/crc32c_table.hpp"

#include <cstring>

namespace score::pm {

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t length) {
  return ~crc32c_by_table(~crc, static_cast<const std::uint8_t*>(data), length);
}

std::uint32_t crc32c_copy(std::uint32_t crc, void* to, const void* from, std::size_t length) {
  if (length != 0) std::memcpy(to, from, length);
  return crc32c(crc, from, length);
}

}  // namespace score::pm
