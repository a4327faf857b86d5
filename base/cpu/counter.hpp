// Reads the processor's counter of time.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace score::inline base {

#if defined(__x86_64__)

// Returns true if the counter never stops and has one rate on all processors.
inline bool has_steady_counter() {
  constexpr unsigned kInvariantBit = 1u << 8;  // CPUID 8000_0007h EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & kInvariantBit) != 0;
}

inline std::uint64_t read_counter() {
  return __rdtsc();
}

#elif defined(__aarch64__)

inline bool has_steady_counter() {
  return true;  // by the architecture
}

inline std::uint64_t read_counter() {
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}

#else

inline bool has_steady_counter() {
  return false;
}

inline std::uint64_t read_counter() {
  return 0;
}

#endif

}  // namespace score::inline base
