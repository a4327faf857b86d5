// One crc32 instruction takes 3 cycles and starts every cycle, so three independent streams run in
// parallel. Their results are joined by multiplying with x^(8n) modulo the polynomial, one
// carry-less multiplication each (Gopal et al., "Fast CRC Computation for iSCSI Polynomial Using
// CRC32 Instruction", Intel 2011). A frame's payload is about two blocks of three streams.
#include "pmlib/wire/crc32c.hpp"
#include "pmlib/wire/crc32c_table.hpp"

#include <cstring>

// g++ 12 takes the undefined halves in its own header for errors of this file (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace score::pm {

namespace {

constexpr std::size_t kStreamBytes = 232;  // three of them: half of an Ethernet payload
constexpr std::size_t kBlockBytes = 3 * kStreamBytes;

// Returns x^n modulo the polynomial, bit-reversed.
constexpr std::uint32_t power_of_x(std::size_t n) {
  std::uint32_t value = 0x80000000;
  for (; n > 0; --n) value = crc32c_shift_bit(value);
  return value;
}

// A stream's checksum is moved over the bytes behind it. The product of two reversed 32-bit
// numbers is 33 bits short, and the joining crc32 instruction itself moves by 64 bits.
constexpr std::uint32_t kOverOne = power_of_x(8 * kStreamBytes - 33);
constexpr std::uint32_t kOverTwo = power_of_x(8 * 2 * kStreamBytes - 33);

std::uint64_t load(const std::uint8_t* p) {
  std::uint64_t value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

__attribute__((target("sse4.2,pclmul"))) std::uint64_t multiply(std::uint64_t crc,
                                                                std::uint32_t power) {
  const __m128i a = _mm_cvtsi64_si128(static_cast<long long>(crc & 0xffffffff));
  const __m128i b = _mm_cvtsi64_si128(static_cast<long long>(std::uint64_t{power}));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(a, b, 0)));
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t update_block(std::uint32_t crc,
                                                                    const std::uint8_t* p) {
  std::uint64_t a = crc;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  for (std::size_t i = 0; i < kStreamBytes - 8; i += 8) {
    a = _mm_crc32_u64(a, load(p + i));
    b = _mm_crc32_u64(b, load(p + kStreamBytes + i));
    c = _mm_crc32_u64(c, load(p + 2 * kStreamBytes + i));
  }
  a = _mm_crc32_u64(a, load(p + kStreamBytes - 8));
  b = _mm_crc32_u64(b, load(p + 2 * kStreamBytes - 8));
  const std::uint64_t joined = multiply(a, kOverTwo) ^ multiply(b, kOverOne);
  return static_cast<std::uint32_t>(_mm_crc32_u64(c, load(p + 3 * kStreamBytes - 8) ^ joined));
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t update_by_instruction(std::uint32_t crc,
                                                                             const std::uint8_t* p,
                                                                             std::size_t length) {
  for (; length >= kBlockBytes; length -= kBlockBytes, p += kBlockBytes) crc = update_block(crc, p);
  std::uint64_t value = crc;
  for (; length >= 8; length -= 8, p += 8) value = _mm_crc32_u64(value, load(p));
  auto rest = static_cast<std::uint32_t>(value);
  if (length >= 4) {  // the size of a frame's header leaves four bytes
    std::uint32_t word = 0;
    std::memcpy(&word, p, sizeof word);
    rest = _mm_crc32_u32(rest, word);
    p += 4, length -= 4;
  }
  for (; length > 0; --length, ++p) rest = _mm_crc32_u8(rest, *p);
  return rest;
}

// Messages up to this size use little code, because their time is mostly waiting for code.
constexpr std::size_t kShortBytes = 256;

__attribute__((target("sse4.2"), noinline)) std::uint32_t crc32c_of_short(std::uint32_t crc,
                                                                          const std::uint8_t* p,
                                                                          std::size_t length) {
  std::uint64_t value = ~crc;
  const std::uint8_t* const end = p + length;
  for (; end - p >= 8; p += 8) value = _mm_crc32_u64(value, load(p));
  auto rest = static_cast<std::uint32_t>(value);
  if (end - p >= 4) {  // the size of a frame's header leaves four bytes
    std::uint32_t word = 0;
    std::memcpy(&word, p, sizeof word);
    rest = _mm_crc32_u32(rest, word);
    p += 4;
  }
  for (; p != end; ++p) rest = _mm_crc32_u8(rest, *p);
  return ~rest;
}

// --- with 512-bit carry-less multiplication ----------------------------------------------------
//
// Four registers of 64 bytes run over the data. Before new bytes are added, each register is moved
// by 256 bytes, with one multiplication for either half of each 128-bit lane. At the end the
// registers, then the lanes, are moved onto the last one. A move over D bits multiplies by x^(D +
// 31) and x^(D - 33).

#define SCORE_WIDE __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))

struct Move {
  std::uint32_t low, high;
};

constexpr Move move_by(std::size_t bits) {
  return {power_of_x(bits + 31), power_of_x(bits - 33)};
}

constexpr Move kBy2048 = move_by(2048), kBy1536 = move_by(1536), kBy1024 = move_by(1024),
               kBy768 = move_by(768), kBy512 = move_by(512), kBy384 = move_by(384),
               kBy256 = move_by(256), kBy128 = move_by(128);

SCORE_WIDE __m512i moved(__m512i value, Move by, __m512i added) {
  const __m512i k = _mm512_broadcast_i32x4(
      _mm_set_epi64x(static_cast<long long>(by.high), static_cast<long long>(by.low)));
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, k, 0x00),
                                   _mm512_clmulepi64_epi128(value, k, 0x11), added, 0x96);
}

// The function is inlined into functions for different processors, with the instructions that those
// may use.
__attribute__((target("sse4.2,pclmul"), always_inline)) inline __m128i moved_lane(__m128i value,
                                                                                  Move by,
                                                                                  __m128i added) {
  const __m128i k = _mm_set_epi64x(static_cast<long long>(by.high), static_cast<long long>(by.low));
  return _mm_xor_si128(added, _mm_xor_si128(_mm_clmulepi64_si128(value, k, 0x00),
                                            _mm_clmulepi64_si128(value, k, 0x11)));
}

// With `kCopies` the bytes are stored at `to` in the same pass, since they are in registers anyway.
template <bool kCopies>
SCORE_WIDE __m512i take(const std::uint8_t* p, std::uint8_t* to) {
  const __m512i value = _mm512_loadu_si512(p);
  if constexpr (kCopies) _mm512_storeu_si512(to, value);
  return value;
}

template <bool kCopies>
SCORE_WIDE std::uint32_t run_wide(std::uint32_t crc, const std::uint8_t* p, std::uint8_t* to,
                                  std::size_t length) {
  const auto at = [&](std::size_t offset) SCORE_WIDE {
    return take<kCopies>(p + offset, kCopies ? to + offset : nullptr);
  };
  const auto go_on = [&](std::size_t bytes) {
    p += bytes, length -= bytes;
    if constexpr (kCopies) to += bytes;
  };
  __m512i a =
      _mm512_xor_si512(at(0), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = at(64);
  __m512i c = at(128);
  __m512i d = at(192);
  for (go_on(256); length >= 256; go_on(256)) {
    a = moved(a, kBy2048, at(0));
    b = moved(b, kBy2048, at(64));
    c = moved(c, kBy2048, at(128));
    d = moved(d, kBy2048, at(192));
  }
  d = moved(a, kBy1536, moved(b, kBy1024, moved(c, kBy512, d)));
  for (; length >= 64; go_on(64)) d = moved(d, kBy512, at(0));
  __m128i lane = _mm512_extracti32x4_epi32(d, 3);
  lane = moved_lane(_mm512_extracti32x4_epi32(d, 2), kBy128, lane);
  lane = moved_lane(_mm512_extracti32x4_epi32(d, 1), kBy256, lane);
  lane = moved_lane(_mm512_castsi512_si128(d), kBy384, lane);
  std::uint64_t value = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(lane)));
  value = _mm_crc32_u64(value, static_cast<std::uint64_t>(_mm_extract_epi64(lane, 1)));
  // Without this the upper halves of the registers stay in use, and floating-point code of the
  // application in the older encoding then takes half as long again.
  _mm256_zeroupper();
  if constexpr (kCopies) std::memcpy(to, p, length);
  return update_by_instruction(static_cast<std::uint32_t>(value), p, length);
}

SCORE_WIDE std::uint32_t update_wide(std::uint32_t crc, const std::uint8_t* p, std::size_t length) {
  if (length < 256) return update_by_instruction(crc, p, length);
  return run_wide<false>(crc, p, nullptr, length);
}

// --- with 256-bit carry-less multiplication ----------------------------------------------------
//
// The same method with four registers of 32 bytes serves processors without the wider ones. It is
// not faster than the instruction, but the bytes that it stores on the way cost nothing.

#define SCORE_HALF __attribute__((target("sse4.2,pclmul,avx2,vpclmulqdq")))

SCORE_HALF __m256i moved_half(__m256i value, Move by, __m256i added) {
  const __m256i k = _mm256_broadcastsi128_si256(
      _mm_set_epi64x(static_cast<long long>(by.high), static_cast<long long>(by.low)));
  return _mm256_xor_si256(added, _mm256_xor_si256(_mm256_clmulepi64_epi128(value, k, 0x00),
                                                  _mm256_clmulepi64_epi128(value, k, 0x11)));
}

SCORE_HALF __m256i take_half(const std::uint8_t* p, std::uint8_t* to) {
  const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  return value;
}

// `length` must be 128 bytes or more.
SCORE_HALF std::uint32_t copy_half(std::uint32_t crc, const std::uint8_t* p, std::uint8_t* to,
                                   std::size_t length) {
  const auto at = [&](std::size_t offset) SCORE_HALF { return take_half(p + offset, to + offset); };
  const auto go_on = [&](std::size_t bytes) { p += bytes, to += bytes, length -= bytes; };
  __m256i a =
      _mm256_xor_si256(at(0), _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m256i b = at(32);
  __m256i c = at(64);
  __m256i d = at(96);
  for (go_on(128); length >= 128; go_on(128)) {
    a = moved_half(a, kBy1024, at(0));
    b = moved_half(b, kBy1024, at(32));
    c = moved_half(c, kBy1024, at(64));
    d = moved_half(d, kBy1024, at(96));
  }
  d = moved_half(a, kBy768, moved_half(b, kBy512, moved_half(c, kBy256, d)));
  for (; length >= 32; go_on(32)) d = moved_half(d, kBy256, at(0));
  const __m128i lane =
      moved_lane(_mm256_castsi256_si128(d), kBy128, _mm256_extracti128_si256(d, 1));
  std::uint64_t value = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(lane)));
  value = _mm_crc32_u64(value, static_cast<std::uint64_t>(_mm_extract_epi64(lane, 1)));
  _mm256_zeroupper();  // as above
  std::memcpy(to, p, length);
  return update_by_instruction(static_cast<std::uint32_t>(value), p, length);
}

using Update = std::uint32_t (*)(std::uint32_t, const std::uint8_t*, std::size_t);

bool has_wide() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("vpclmulqdq");
}

bool has_half() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

Update choose_update() {
  if (has_wide()) return update_wide;
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) {
    return crc32c_by_table;
  }
  return update_by_instruction;
}

std::uint32_t update(std::uint32_t crc, const std::uint8_t* p, std::size_t length) {
  static const Update chosen = choose_update();
  return chosen(crc, p, length);
}

std::uint32_t update_and_copy(std::uint32_t crc, const std::uint8_t* p, std::uint8_t* to,
                              std::size_t length) {
  static const bool is_wide = has_wide();
  static const bool is_half = has_half();
  if (is_wide && length >= 256) return run_wide<true>(crc, p, to, length);
  if (is_half && length >= 256) return copy_half(crc, p, to, length);
  if (length != 0) std::memcpy(to, p, length);
  return update(crc, p, length);
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t length) {
  if (length <= kShortBytes && __builtin_cpu_supports("sse4.2")) [[likely]] {
    return crc32c_of_short(crc, static_cast<const std::uint8_t*>(data), length);
  }
  return ~update(~crc, static_cast<const std::uint8_t*>(data), length);
}

std::uint32_t crc32c_copy(std::uint32_t crc, void* to, const void* from, std::size_t length) {
  return ~update_and_copy(~crc, static_cast<const std::uint8_t*>(from),
                          static_cast<std::uint8_t*>(to), length);
}

}  // namespace score::pm
