#include "base/units.hpp"

#include "base/scaled_number.hpp"

#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace score::inline base {

namespace {

constexpr std::string_view kLetters = "KMGTPE";

constexpr std::uint64_t unit_bytes(std::size_t power) {
  return std::uint64_t{1} << (10 * power);
}

// Returns the factor of the suffix, or 0 if it is not a suffix.
std::uint64_t suffix_unit(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 1;
  const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(suffix[0])));
  const auto at = kLetters.find(upper);
  if (at == kLetters.npos) return 0;
  std::string rest(suffix.substr(1));
  for (char& letter : rest) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  if (!rest.empty() && rest != "b" && rest != "ib") return 0;
  return unit_bytes(at + 1);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789.");
  const auto number = text.substr(0, digits);
  const std::uint64_t unit = suffix_unit(text.substr(number.size()));
  if (unit == 0) return fail(Errc::Malformed, "size: no such unit (use K, M, G, T)");
  const auto value = scaled_number(number, unit);
  if (!value) return value.error().with_context("size");
  return Bytes(*value);
}

std::string format_bytes(Bytes bytes) {
  std::size_t power = 0;
  while (power < kLetters.size() && bytes.value() != 0 &&
         bytes.value() % unit_bytes(power + 1) == 0) {
    ++power;
  }
  const auto number = fmt::format("{}", bytes.value() / unit_bytes(power));
  return power == 0 ? number : number + kLetters[power - 1];
}

std::string human_bytes(Bytes bytes) {
  std::size_t power = 0;
  while (power < kLetters.size() && bytes.value() >= unit_bytes(power + 1)) ++power;
  if (power == 0) return fmt::format("{}", bytes.value());
  const std::uint64_t whole = bytes.value() / unit_bytes(power);
  const std::uint64_t rest = bytes.value() % unit_bytes(power);
  const char letter = kLetters[power - 1];
  // rest is below 2^60, so rest / 1024 * 10 does not overflow.
  const std::uint64_t tenth = (rest / 1024) * 10 / (unit_bytes(power) / 1024);
  if (whole >= 100 || tenth == 0) return fmt::format("{}{}", whole, letter);
  return fmt::format("{}.{}{}", whole, tenth, letter);
}

}  // namespace score::inline base
