// The checksum without an instruction of the processor. One source per architecture implements
// crc32c() and crc32c_copy(), and uses this where the processor lacks its instructions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace score::pm {

constexpr std::uint32_t crc32c_shift_bit(std::uint32_t crc) {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bit-reversed 0x1edc6f41
  return (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
}

// Continues from `crc`, which is not inverted at either end.
inline std::uint32_t crc32c_by_table(std::uint32_t crc, const std::uint8_t* p, std::size_t length) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) table[i] = crc32c_shift_bit(table[i]);
    }
    return table;
  }();
  for (; length > 0; --length, ++p) crc = (crc >> 8) ^ kTable[(crc ^ *p) & 0xff];
  return crc;
}

}  // namespace score::pm
