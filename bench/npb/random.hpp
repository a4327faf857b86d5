// Generates the random numbers of the NAS Parallel Benchmarks (report RNR-94-007, section 2.3):
// x(k+1) = a x(k) mod 2^46, as numbers x(k) / 2^46 in (0, 1). The product modulo 2^64 has the right
// low bits, so integers suffice where the specification uses pairs of doubles.
#pragma once

#include <cstdint>

namespace score::npb {

class Random {
 public:
  static constexpr std::uint64_t kSeed = 314'159'265;
  static constexpr std::uint64_t kFactor = 1'220'703'125;  // 5^13

  // Starts as if `skipped` numbers had been drawn already.
  explicit Random(std::uint64_t seed = kSeed, std::uint64_t skipped = 0)
      : x_(seed * power(skipped) & kMask) {}

  double next() {
    x_ = x_ * kFactor & kMask;
    return static_cast<double>(x_) * kScale;
  }

 private:
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 46) - 1;
  static constexpr double kScale = 1.0 / (std::uint64_t{1} << 46);

  static constexpr std::uint64_t power(std::uint64_t exponent) {
    std::uint64_t result = 1;
    for (std::uint64_t square = kFactor; exponent != 0; exponent /= 2, square *= square) {
      if (exponent % 2 != 0) result *= square;
    }
    return result;
  }

  std::uint64_t x_;
};

}  // namespace score::npb
