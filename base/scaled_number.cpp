// Its functions are tested by units_test.cpp and time_test.cpp.

#include "base/scaled_number.hpp"

#include "base/text.hpp"

#include <ranges>

namespace score::inline base {

namespace {

// Computes 0.`digits` x unit by Horner's rule from the last digit. The result is exact but for the
// final rounding down. Units are below 2^60.4, so ten times a unit fits into 64 bits.
Result<std::uint64_t> scaled_fraction(std::string_view digits, std::uint64_t unit) {
  if (digits.empty()) return fail(Errc::Malformed, "no digit after the point");
  std::uint64_t value = 0;
  for (const char digit : std::views::reverse(digits)) {
    if (digit < '0' || digit > '9') return fail(Errc::Malformed, "not a number");
    value = (static_cast<std::uint64_t>(digit - '0') * unit + value) / 10;
  }
  return value;
}

}  // namespace

Result<std::uint64_t> scaled_number(std::string_view number, std::uint64_t unit) {
  const auto point = number.find('.');
  const auto whole = parse_number<std::uint64_t>(number.substr(0, point));
  if (!whole) return whole.error().with_context("not a number");
  std::uint64_t value = 0;
  if (__builtin_mul_overflow(*whole, unit, &value)) return Error(Errc::TooLarge);
  if (point == number.npos) return value;
  const auto fraction = scaled_fraction(number.substr(point + 1), unit);
  if (!fraction) return fraction.error();
  if (__builtin_add_overflow(value, *fraction, &value)) return Error(Errc::TooLarge);
  return value;
}

}  // namespace score::inline base
