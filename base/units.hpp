#pragma once
// Defines quantities of memory and data as a type.

#include "base/result.hpp"

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace score::inline base {

// Bytes is a number of bytes. Conversions are explicit in both directions. Arithmetic saturates at
// 0 and at max(), so that a sum of user requests cannot wrap around to a small number, and
// over-reserved memory shows as no free memory.
class Bytes {
 public:
  constexpr Bytes() = default;

  constexpr explicit Bytes(std::uint64_t value) : value_(value) {}

  static constexpr Bytes max() { return Bytes(std::numeric_limits<std::uint64_t>::max()); }

  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    return a.value_ > max().value_ - b.value_ ? max() : Bytes(a.value_ + b.value_);
  }

  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return a.value_ < b.value_ ? Bytes() : Bytes(a.value_ - b.value_);
  }

  friend constexpr Bytes operator*(Bytes a, std::uint64_t count) {
    if (count != 0 && a.value_ > max().value_ / count) return max();
    return Bytes(a.value_ * count);
  }

  friend constexpr Bytes operator*(std::uint64_t count, Bytes a) { return a * count; }

  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }

  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::uint64_t value_ = 0;
};

inline namespace literals {

constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(n);
}

constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(1024) * n;
}

constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(1024) * 1024 * n;
}

constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(1024) * 1024 * 1024 * n;
}

}  // namespace literals

// Parses "4096", "64K", "512M", "1.5G" or "2T", in powers of 1024. An optional "B" or "iB" follows
// the letter; upper and lower case are equal. Errors: Malformed, TooLarge (does not fit 64 bits).
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

// Returns the exact size in the largest unit that divides it: "512M", "1536M", "100". parse_bytes
// reads it back.
[[nodiscard]] std::string format_bytes(Bytes bytes);

// Returns the size for people with about three digits, rounded down: "1.5G", "23.4G", "118M",
// "999".
[[nodiscard]] std::string human_bytes(Bytes bytes);

}  // namespace score::inline base

template <>
struct fmt::formatter<score::Bytes> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(score::Bytes bytes, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(score::format_bytes(bytes), context);
  }
};
