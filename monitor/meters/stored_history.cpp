#include "monitor/meters/stored_history.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <vector>

namespace score::monitor {

namespace {

constexpr Duration kOneSecond = std::chrono::seconds(1);
constexpr Duration kLeastStep = std::chrono::minutes(1);
constexpr std::int64_t kMostSeconds = 9'000'000'000;  // more would overflow in nanoseconds

constexpr Duration HistoryPoint::*kTimes[] = {&HistoryPoint::observed, &HistoryPoint::user,
                                              &HistoryPoint::system,   &HistoryPoint::filled,
                                              &HistoryPoint::busy,     &HistoryPoint::overhead};
constexpr std::uint64_t HistoryPoint::*kCounts[] = {&HistoryPoint::switches, &HistoryPoint::late};
// These are written in milliseconds.
constexpr double HistoryPoint::*kProducts[] = {
    &HistoryPoint::job_seconds, &HistoryPoint::node_seconds, &HistoryPoint::core_seconds};
constexpr std::size_t kNumbers = 2 + std::size(kTimes) + std::size(kCounts) + std::size(kProducts);

void write_point(std::string& out, Duration step, const HistoryPoint& point) {
  fmt::format_to(std::back_inserter(out), "{} {}", step / kOneSecond,
                 point.begin.time_since_epoch() / kOneSecond);
  for (const auto time : kTimes) {
    fmt::format_to(std::back_inserter(out), " {}", (point.*time).count());
  }
  for (const auto count : kCounts) fmt::format_to(std::back_inserter(out), " {}", point.*count);
  for (const auto product : kProducts) {
    fmt::format_to(std::back_inserter(out), " {}", std::llround(point.*product * 1000));
  }
  out += '\n';
}

// Returns the numbers of a line; none unless it has all, and none is negative.
std::vector<std::int64_t> numbers_of(std::string_view line) {
  std::vector<std::int64_t> numbers;
  for (const auto word : split(line, ' ')) {
    const auto number = parse_number<std::int64_t>(word);
    if (!number || *number < 0) return {};
    numbers.push_back(*number);
  }
  if (numbers.size() != kNumbers || numbers[0] > kMostSeconds || numbers[1] > kMostSeconds) {
    return {};
  }
  return numbers;
}

}  // namespace

std::string write_points(const LoadHistory& history) {
  std::string out;
  for (const LoadHistory::Ring& ring : history.rings()) {
    if (ring.step < kLeastStep) continue;
    for (const HistoryPoint& point : ring.points) write_point(out, ring.step, point);
  }
  return out;
}

void read_points(LoadHistory& history, std::string_view text) {
  std::map<Duration, std::vector<HistoryPoint>> found;
  for (const auto line : split(text, '\n')) {
    const std::vector<std::int64_t> numbers = numbers_of(line);
    if (numbers.empty()) continue;
    HistoryPoint point{.begin = WallTime(kOneSecond * numbers[1])};
    auto next = numbers.begin() + 2;
    for (const auto time : kTimes) point.*time = Duration(*next++);
    for (const auto count : kCounts) point.*count = static_cast<std::uint64_t>(*next++);
    for (const auto product : kProducts) point.*product = static_cast<double>(*next++) / 1000;
    found[kOneSecond * numbers[0]].push_back(point);
  }
  for (const auto& [step, points] : found) history.restore(step, points);
}

}  // namespace score::monitor
