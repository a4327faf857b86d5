// This module is tested by test_profile.py.
#include "proto/documents/profile_document.hpp"

#include "proto/documents/words.hpp"

#include <fmt/format.h>

namespace score::proto {

double processors_in(const wire::Profile& profile, const wire::ProfilePoint& point) {
  if (profile.step_ns() <= 0) return 0;
  return static_cast<double>(point.cpu_ns()) / static_cast<double>(profile.step_ns());
}

void write_profile(JsonWriter& json, std::uint64_t job, const wire::Profile& profile) {
  json.begin_object().field("schema", "scored.profile/1").field("job", job);
  json.field("step_s", to_seconds(profile.step_ns())).key("points").begin_array();
  for (const auto& point : profile.points()) {
    write_moment(json.begin_object(), "end_unix_s", point.end_wall_ns());
    json.field("cpu_s", to_seconds(point.cpu_ns()));
    json.field("processors", processors_in(profile, point));
    json.field("memory_bytes", point.memory_bytes());
    json.field("memory_largest_bytes", point.memory_largest_bytes());
    json.field("pm_bytes", point.pm_sent_bytes()).end_object();
  }
  json.end_array().end_object();
}

std::string profile_csv(const wire::Profile& profile) {
  std::string text = "end_unix_s,cpu_s,processors,memory_bytes,memory_largest_bytes,pm_bytes\n";
  for (const auto& point : profile.points()) {
    text += fmt::format("{:.0f},{:.3f},{:.3f},{},{},{}\n", to_seconds(point.end_wall_ns()),
                        to_seconds(point.cpu_ns()), processors_in(profile, point),
                        point.memory_bytes(), point.memory_largest_bytes(), point.pm_sent_bytes());
  }
  return text;
}

}  // namespace score::proto
