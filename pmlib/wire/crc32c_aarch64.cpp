#include "pmlib/wire/crc32c.hpp"
#include "pmlib/wire/crc32c_table.hpp"

#include <arm_acle.h>
#include <asm/hwcap.h>
#include <cstring>
#include <sys/auxv.h>

namespace score::pm {

namespace {

// The instructions are optional in ARMv8.0.
[[gnu::target("+crc")]] std::uint32_t update_by_instruction(std::uint32_t crc,
                                                            const std::uint8_t* p,
                                                            std::size_t length) {
  for (; length >= 8; length -= 8, p += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    crc = __crc32cd(crc, value);
  }
  if (length >= 4) {  // the size of a frame's header leaves four bytes
    std::uint32_t word = 0;
    std::memcpy(&word, p, sizeof word);
    crc = __crc32cw(crc, word);
    p += 4, length -= 4;
  }
  for (; length > 0; --length, ++p) crc = __crc32cb(crc, *p);
  return crc;
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t length) {
  static const bool has_instruction = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  const auto* p = static_cast<const std::uint8_t*>(data);
  return ~(has_instruction ? update_by_instruction : crc32c_by_table)(~crc, p, length);
}

std::uint32_t crc32c_copy(std::uint32_t crc, void* to, const void* from, std::size_t length) {
  if (length != 0) std::memcpy(to, from, length);
  return crc32c(crc, from, length);
}

}  // namespace score::pm
