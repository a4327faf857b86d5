#include "scout/accounting/profile_view.hpp"

#include "base/text.hpp"
#include "proto/documents/profile_document.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace score::scout {

namespace {

constexpr std::size_t kHeight = 5;        // lines of a chart
constexpr std::size_t kLabelColumns = 9;  // left of a chart
constexpr std::size_t kLeastColumns = 20;

struct Quantity {
  std::string title;
  std::function<double(const wire::ProfilePoint&)> value;
  std::function<std::string(double)> words;
};

std::string draw(const wire::Profile& profile, const Quantity& quantity, std::size_t per_column) {
  std::vector<double> values;
  double sum = 0;
  for (int i = 0; i < profile.points_size(); ++i) {
    const double value = quantity.value(profile.points(i));
    if (static_cast<std::size_t>(i) % per_column == 0) values.push_back(0);
    values.back() = std::max(values.back(), value);
    sum += value;
  }
  const double most = std::ranges::max(values);
  std::string text = fmt::format("{}: {} at most, {} on average\n", quantity.title,
                                 quantity.words(most), quantity.words(sum / profile.points_size()));
  const auto lines = chart(values, most, kHeight);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("{:>{}} |{}\n", i == 0 ? quantity.words(most) : "", kLabelColumns - 2,
                        lines[i]);
  }
  return text;
}

}  // namespace

std::vector<std::string> chart(const std::vector<double>& values, double most, std::size_t height) {
  std::vector<std::string> lines(height);
  for (const double value : values) {
    const double part = most > 0 ? value / most : 0;
    const auto filled = static_cast<std::size_t>(std::ceil(part * static_cast<double>(height)));
    for (std::size_t line = 0; line < height; ++line)
      lines[line] += height - line <= filled ? '#' : ' ';
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::string profile_page(const wire::Profile& profile, std::size_t columns) {
  if (profile.points().empty()) return "nothing was recorded: the job ran for less than 10 s\n";
  const std::size_t room = std::max(columns, kLeastColumns + kLabelColumns) - kLabelColumns;
  const auto count = static_cast<std::size_t>(profile.points_size());
  const std::size_t per_column = (count + room - 1) / room;
  const Quantity processors{"processors busy",
                            [&](const auto& point) { return proto::processors_in(profile, point); },
                            [](double value) { return fmt::format("{:.1f}", value); }};
  const Quantity memory{
      "memory of all nodes",
      [](const auto& point) { return static_cast<double>(point.memory_bytes()); },
      [](double value) { return short_bytes(Bytes(static_cast<std::uint64_t>(value))); }};
  const auto step = Duration(profile.step_ns());
  return draw(profile, processors, per_column) + draw(profile, memory, per_column) +
         fmt::format("from {} to {}, {} a column\n",
                     local_time(profile.points(0).end_wall_ns() - step.count()),
                     local_time(profile.points().rbegin()->end_wall_ns()),
                     format_duration(step * static_cast<std::int64_t>(per_column)));
}

}  // namespace score::scout
