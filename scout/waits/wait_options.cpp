#include "scout/waits/wait_options.hpp"

#include "base/text.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <ctime>
#include <utility>

namespace score::scout {
namespace {

constexpr Duration kMostAhead = 24h * 36'500;  // a century; a larger value would overflow

// Returns the next time of day, today or tomorrow.
std::optional<std::int64_t> next_time_of_day(const std::string& text, std::time_t now) {
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    std::tm parts{};
    if (localtime_r(&now, &parts) == nullptr) return std::nullopt;
    parts.tm_sec = 0;
    const char* end = strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    parts.tm_isdst = -1;
    std::time_t at = std::mktime(&parts);
    if (at <= now) {
      ++parts.tm_mday;
      parts.tm_isdst = -1;
      at = std::mktime(&parts);
    }
    return Duration(std::chrono::seconds(at)).count();
  }
  return std::nullopt;
}

// Parses "now+2hours" and "now+90" (seconds) as Slurm does, and "2h" and "now+1h30m" as our other
// options do. Returns nothing for any other word.
std::optional<Duration> time_from_now(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Duration>, 5> kUnits = {
      {{"second", 1s}, {"minute", 60s}, {"hour", 1h}, {"day", 24h}, {"week", 24h * 7}}};
  const bool is_slurms = word.starts_with("now+");
  if (is_slurms) word.remove_prefix(4);
  if (word.find_first_of("-:") != word.npos) return std::nullopt;
  const auto bare = is_slurms ? BareNumber::Seconds : BareNumber::Refused;
  if (const auto plain = parse_duration(word, bare)) return *plain;
  const auto digits = word.find_first_not_of("0123456789");
  const auto number = parse_number<std::uint32_t>(word.substr(0, digits));
  if (!is_slurms || !number || digits == word.npos) return std::nullopt;
  std::string_view unit = word.substr(digits);
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (const auto& [name, length] : kUnits) {
    if (unit == name && *number < kMostAhead / length) return length * std::int64_t{*number};
  }
  return std::nullopt;
}

Status fill_time(std::string_view option, const std::string& text, WallTime now, WallTime from,
                 std::int64_t& out) {
  if (text.empty() || (text == "now" && option == "--begin")) return {};
  const auto at = parse_ahead(text, now, from);
  if (!at) return at.error().with_context("{}", option);
  if (*at <= now.time_since_epoch().count()) {
    return fail(Errc::Malformed, "{} {}: {} is in the past", option, escape_terminal(text, 80),
                local_time(*at));
  }
  out = *at;
  return {};
}

}  // namespace

namespace {

// Returns the error in the value; empty if there is none.
std::string check_list(const std::string& text) {
  wire::JobConditions conditions;
  const auto read = parse_after(text, conditions);
  return read ? std::string() : read.error().context();
}

std::string check_time(const std::string& text) {
  const auto at = parse_ahead(text, wall_now());
  return at ? std::string() : at.error().context();
}

}  // namespace

void add_wait_options(CLI::App& app, WaitOptions& options) {
  app.add_option(
         "-d,--after,--dependency", options.after,
         "Wait for other jobs: afterok:JOB[:JOB...], afterany, afternotok, after (its "
         "start), singleton (earlier jobs of its name); with commas: all of them, with ?: one")
      ->type_name("LIST")
      ->check(check_list);
  app.add_flag("--kill-on-invalid-dep", options.end_if_never,
               "End the job when its dependency can no longer be fulfilled; else it keeps waiting");
  app.add_option("--begin", options.begin,
                 "Do not start before this time: 16:00, 2026-12-01T08:30, 2h")
      ->type_name("TIME")
      ->check(check_time);
  app.add_option("--deadline", options.deadline, "End the job by this time, or do not start it")
      ->type_name("TIME")
      ->check(check_time);
}

void add_array_option(CLI::App& app, WaitOptions& options) {
  app.add_option("-a,--array", options.array,
                 "Submit an array with a task for each number, at most M at a time; each has "
                 "$SCORE_ARRAY_TASK_ID, and %a and %A in the names of files")
      ->type_name("0-99[:STEP][%M]");
}

Result<std::int64_t> parse_ahead(std::string_view word, WallTime now, WallTime from) {
  const std::string text(word);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(from.time_since_epoch()).count();
  if (const auto at = next_time_of_day(text, static_cast<std::time_t>(seconds))) return *at;
  if (word == "now") return now.time_since_epoch().count();
  if (const auto after = time_from_now(word); after && *after < kMostAhead) {
    return (now + *after).time_since_epoch().count();
  }
  if (const auto date = parse_past(word, 0); date && *date > 0) return *date;
  return fail(Errc::Malformed,
              "'{}' is not a time; use 16:00, a date such as 2026-12-01 or 2026-12-01T08:30, or 2h "
              "or now+2hours for the time from now on",
              escape_terminal(word, 80));
}

Status fill_conditions(const WaitOptions& options, WallTime now, wire::Submit& submit) {
  wire::JobConditions conditions;
  if (!options.after.empty()) {
    if (auto read = parse_after(options.after, conditions); !read) {
      return read.error().with_context("--after");
    }
  }
  std::int64_t begin = 0;
  std::int64_t deadline = 0;
  if (auto read = fill_time("--begin", options.begin, now, now, begin); !read) return read;
  // A deadline that is a time of day is the first one after the begin, so that
  // "--begin 22:00 --deadline 06:00" means the same at each hour.
  const WallTime from = begin > 0 ? WallTime(Duration(begin)) : now;
  if (auto read = fill_time("--deadline", options.deadline, now, from, deadline); !read)
    return read;
  conditions.set_begin_wall_ns(begin);
  conditions.set_deadline_wall_ns(deadline);
  conditions.set_end_if_never(options.end_if_never);
  submit.set_array(options.array);
  if (conditions.ByteSizeLong() > 0) *submit.mutable_conditions() = std::move(conditions);
  return {};
}

}  // namespace score::scout
