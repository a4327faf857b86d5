#include "pmlib/wire/crc32c.hpp"
#include "pmlib/wire/crc32c_table.hpp"

namespace score::pm {

std::uint32_t crc32c_reference(std::uint32_t crc, const void* data, std::size_t length) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  crc = ~crc;
  for (; length > 0; --length, ++p) {
    crc ^= *p;
    for (int bit = 0; bit < 8; ++bit) crc = crc32c_shift_bit(crc);
  }
  return ~crc;
}

}  // namespace score::pm
