#include "monitor/model/viewer_options.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "monitor/model/json_input.hpp"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>

namespace score::monitor {

namespace {

constexpr std::array<std::string_view, kParts> kPartNames = {
    "nodes", "matrix", "slices", "jobs", "processes", "switches", "traffic", "events", "peers"};
constexpr std::size_t kMaxUserBytes = 64;

Result<std::optional<JobId>> parse_job(std::string_view text) {
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number == 0) {
    return fail(Errc::Malformed, "'{}' is not a job id", escape_terminal(text, 40));
  }
  return std::optional(JobId(*number));
}

Status set_user(ViewerOptions& options, std::string_view name) {
  if (name.size() > kMaxUserBytes) return fail(Errc::Malformed, "user: too long");
  options.filter.user = name;
  return {};
}

Status set_rate(ViewerOptions& options, Result<double> rate) {
  if (!rate) return rate.error();
  const auto ticks = ticks_of_rate(*rate);
  if (!ticks) return ticks.error();
  options.ticks = *ticks;
  return {};
}

Status apply(ViewerOptions& options, const std::string& name, const std::string& value) {
  if (name == "rate") return set_rate(options, parse_decimal(value));
  if (name == "user") return set_user(options, value);
  if (name == "parts") {
    const auto parts = parse_parts(value);
    if (!parts) return parts.error();
    options.filter.parts = *parts;
    return {};
  }
  if (name == "job") {
    const auto job = parse_job(value);
    if (!job) return job.error();
    options.filter.job = *job;
    return {};
  }
  if (name == "count") {
    const auto count = parse_number<std::uint64_t>(value);
    if (!count || *count == 0) return fail(Errc::Malformed, "count: it must be 1 or more");
    options.count = *count;
    return {};
  }
  return fail(Errc::Malformed, "unknown name '{}'", escape_terminal(name, 40));
}

Result<std::uint32_t> parts_of_list(const std::vector<std::string>& names) {
  std::uint32_t parts = 0;
  for (const std::string& name : names) {
    const auto part = parse_parts(name);
    if (!part) return part.error();
    parts |= *part;
  }
  return parts;
}

Status apply(ViewerMessage& message, const std::string& name, const JsonValue& value) {
  ViewerOptions& options = message.options;
  const bool is_null = std::holds_alternative<JsonNull>(value);
  if (const auto* number = std::get_if<double>(&value)) {
    if (name == "rate") return set_rate(options, *number);
    const bool is_whole =
        *number >= 1 && *number <= kMaxExactNumber && std::floor(*number) == *number;
    if (name == "job" && is_whole) {
      options.filter.job = JobId(static_cast<std::uint64_t>(*number));
      return {};
    }
  } else if (const auto* flag = std::get_if<bool>(&value); flag != nullptr && name == "pause") {
    message.pause = *flag;
    return {};
  } else if (const auto* list = std::get_if<std::vector<std::string>>(&value);
             list != nullptr && name == "parts") {
    const auto parts = parts_of_list(*list);
    if (!parts) return parts.error();
    options.filter.parts = *parts;
    return {};
  } else if (const auto* text = std::get_if<std::string>(&value);
             text != nullptr && name == "user") {
    return set_user(options, *text);
  } else if (is_null && (name == "job" || name == "user" || name == "parts")) {
    if (name == "job") options.filter.job.reset();
    if (name == "user") options.filter.user.clear();
    if (name == "parts") options.filter.parts = Filter().parts;
    return {};
  }
  return fail(Errc::Malformed, "'{}' is not understood", escape_terminal(name, 40));
}

}  // namespace

Result<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return fail(Errc::Malformed, "'{}' is not a number", escape_terminal(text, 40));
  }
  return value;
}

Result<std::uint32_t> parse_parts(std::string_view text) {
  std::uint32_t parts = 0;
  for (const auto word : split(text, ',')) {
    std::size_t index = 0;
    while (index < kParts && kPartNames[index] != word) ++index;
    if (index == kParts && word != "cluster") {
      return fail(Errc::Malformed, "'{}' is not a part; the parts are cluster, {}",
                  escape_terminal(word, 40), fmt::join(kPartNames, ", "));
    }
    if (index < kParts) parts |= 1U << index;
  }
  return parts;
}

Result<std::uint32_t> ticks_of_rate(double rate) {
  if (!(rate >= kSlowestRate && rate <= kFastestRate)) {
    return fail(Errc::TooLarge, "rate: must be between {} and {} per second", kSlowestRate,
                kFastestRate);
  }
  const double ticks = std::ceil(kFastestRate / rate - 1e-9);
  return std::min(static_cast<std::uint32_t>(ticks), kMostTicks);
}

Result<ViewerOptions> read_query(const Query& query, ViewerOptions defaults) {
  for (const auto& [name, value] : query) {
    if (auto applied = apply(defaults, name, value); !applied) return applied.error();
  }
  return defaults;
}

Result<ViewerMessage> read_message(std::string_view json, ViewerOptions current) {
  const auto object = parse_object(json);
  if (!object) return object.error();
  ViewerMessage message{std::move(current), std::nullopt};
  for (const auto& [name, value] : *object) {
    if (auto applied = apply(message, name, value); !applied) return applied.error();
  }
  return message;
}

}  // namespace score::monitor
