#include "base/time.hpp"

#include "base/scaled_number.hpp"
#include "base/text.hpp"

#include <array>
#include <ctime>
#include <limits>
#include <optional>

namespace score::inline base {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t ns;
};

// The units are in descending order, as parse_units and format_duration need it. Names are matched
// whole.
constexpr std::array<Unit, 7> kUnits = {{{"d", 86'400'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};

constexpr auto kMaxNs = static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max());

Duration read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::optional<std::size_t> unit_index(std::string_view name) {
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (kUnits[i].name == name) return i;
  }
  return std::nullopt;
}

Result<Duration> to_duration(std::uint64_t ns) {
  if (ns > kMaxNs) return fail(Errc::TooLarge, "duration");
  return Duration(static_cast<Duration::rep>(ns));
}

// Parses numbers with units such as "1h30m"; each unit is smaller than the one before.
Result<Duration> parse_units(std::string_view text) {
  std::uint64_t sum = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    const auto number = text.substr(0, text.find_first_not_of("0123456789."));
    text.remove_prefix(number.size());
    const auto name = text.substr(0, text.find_first_of("0123456789."));
    text.remove_prefix(name.size());
    const auto unit = unit_index(name);
    if (!unit || *unit < next_unit) {
      return fail(Errc::Malformed, "duration: use a number and d, h, m, s, ms, us or ns");
    }
    const auto part = scaled_number(number, kUnits[*unit].ns);
    if (!part) return part.error().with_context("duration");
    if (__builtin_add_overflow(sum, *part, &sum)) return fail(Errc::TooLarge, "duration");
    next_unit = *unit + 1;
  }
  return to_duration(sum);
}

// Parses "D-HH:MM:SS", "HH:MM:SS" or "MM:SS".
Result<Duration> parse_colons(std::string_view text) {
  const Error malformed = fail(Errc::Malformed, "duration: use [[D-]HH:]MM:SS");
  std::uint64_t total = 0;  // in the unit of the field that was read last
  const auto dash = text.find('-');
  const bool has_days = dash != text.npos;
  if (has_days) {
    const auto days = parse_number<std::uint32_t>(text.substr(0, dash));
    if (!days) return malformed;
    total = *days;
    text.remove_prefix(dash + 1);
  }
  const auto fields = split(text, ':');
  if (fields.size() > 3 || fields.size() < 2 || (has_days && fields.size() != 3)) return malformed;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = parse_number<std::uint32_t>(fields[i]);
    const bool is_hours = i + 3 == fields.size();
    const std::uint32_t limit = is_hours ? 24 : 60;
    const bool is_first = i == 0 && !has_days;
    if (!field || (!is_first && *field >= limit)) return malformed;
    total = total * limit + *field;
  }
  std::uint64_t ns = 0;
  if (__builtin_mul_overflow(total, std::uint64_t{1'000'000'000}, &ns)) {
    return fail(Errc::TooLarge, "duration");
  }
  return to_duration(ns);
}

}  // namespace

[[gnu::hot]] TimePoint monotonic_now() {
  return TimePoint(read_clock(CLOCK_MONOTONIC));
}

WallTime wall_now() {
  return WallTime(read_clock(CLOCK_REALTIME));
}

Result<Duration> parse_duration(std::string_view text, BareNumber bare) {
  if (text.empty()) return fail(Errc::Malformed, "duration: empty");
  if (text == "0") return Duration::zero();
  if (text.find(':') != text.npos) return parse_colons(text);
  if (text.find_first_not_of("0123456789.") != text.npos) return parse_units(text);
  if (bare == BareNumber::Refused) {
    return fail(Errc::Malformed, "duration: a unit is missing (ms, s, m, h)");
  }
  return parse_units(std::string(text) + (bare == BareNumber::Minutes ? "m" : "s"));
}

std::string format_duration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  const bool negative = duration < Duration::zero();
  // Negating in unsigned arithmetic is defined for the smallest value too.
  auto ns = static_cast<std::uint64_t>(duration.count());
  if (negative) ns = 0 - ns;
  std::string text = negative ? "-" : "";
  for (const Unit& unit : kUnits) {
    const bool below_second = unit.ns < 1'000'000'000;
    if (below_second) {
      if (ns % unit.ns == 0) return text + fmt::format("{}{}", ns / unit.ns, unit.name);
      continue;
    }
    if (ns % 1'000'000'000 != 0) continue;
    if (ns >= unit.ns) text += fmt::format("{}{}", ns / unit.ns, unit.name);
    ns %= unit.ns;
    if (ns == 0) return text;
  }
  return text;
}

std::string format_hms(Duration duration) {
  const auto seconds = std::max<std::int64_t>(0, duration / 1s);
  const auto hms = [&](std::int64_t hours, int width) {
    return fmt::format("{:0{}}:{:02}:{:02}", hours, width, seconds / 60 % 60, seconds % 60);
  };
  const auto days = seconds / 86'400;
  if (days == 0) return hms(seconds / 3600, 1);
  return fmt::format("{}-{}", days, hms(seconds / 3600 % 24, 2));
}

std::string format_wall(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  const std::time_t value = seconds;
  std::tm utc{};
  if (gmtime_r(&value, &utc) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace score::inline base
