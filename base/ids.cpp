#include "base/ids.hpp"

#include "base/assert.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <sys/random.h>

namespace score::inline base {

namespace {

constexpr std::size_t kHalfDigits = 16;

std::optional<std::uint64_t> parse_half(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

RequestId RequestId::random() {
  std::array<std::uint64_t, 2> words{};
  ssize_t got = 0;
  do {
    got = getrandom(words.data(), sizeof words, 0);
  } while (got < 0 && errno == EINTR);
  SCORE_ASSERT(got == ssize_t{sizeof words}, "getrandom returned {}", got);
  return {.high = words[0], .low = words[1]};
}

std::optional<RequestId> RequestId::parse(std::string_view text) {
  if (text.size() != 2 * kHalfDigits) return std::nullopt;
  const auto high = parse_half(text.substr(0, kHalfDigits));
  const auto low = parse_half(text.substr(kHalfDigits));
  if (!high || !low) return std::nullopt;
  return RequestId{.high = *high, .low = *low};
}

std::string RequestId::to_string() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace score::inline base
