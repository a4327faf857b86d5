#include "monitor/model/history_document.hpp"

#include "base/text/json_writer.hpp"

#include <fmt/format.h>

namespace score::monitor {

namespace {

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::optional<double> ratio(double part, double whole) {
  if (whole <= 0) return std::nullopt;
  return part / whole;
}

struct Column {
  std::string_view name;
  std::optional<double> (*value)(const HistoryPoint&);
};

constexpr Column kColumns[] = {
    {"unix_s",
     [](const HistoryPoint& p) {
       return std::optional(std::chrono::duration<double>(p.begin.time_since_epoch()).count());
     }},
    {"user", [](const HistoryPoint& p) { return ratio(in_seconds(p.user), p.core_seconds); }},
    {"system", [](const HistoryPoint& p) { return ratio(in_seconds(p.system), p.core_seconds); }},
    {"filled", [](const HistoryPoint& p) { return ratio(in_seconds(p.filled), p.core_seconds); }},
    {"busy", [](const HistoryPoint& p) { return ratio(in_seconds(p.busy), p.node_seconds); }},
    {"overhead",
     [](const HistoryPoint& p) { return ratio(in_seconds(p.overhead), in_seconds(p.busy)); }},
    {"switches_per_s",
     [](const HistoryPoint& p) { return ratio(static_cast<double>(p.switches), p.node_seconds); }},
    {"mean_switch_s",
     [](const HistoryPoint& p) {
       return ratio(in_seconds(p.overhead), static_cast<double>(p.switches));
     }},
    {"late", [](const HistoryPoint& p) { return std::optional(static_cast<double>(p.late)); }},
    {"jobs", [](const HistoryPoint& p) { return ratio(p.job_seconds, in_seconds(p.observed)); }},
    {"nodes", [](const HistoryPoint& p) { return ratio(p.node_seconds, in_seconds(p.observed)); }},
};

std::string csv(const std::deque<HistoryPoint>& points) {
  std::string text;
  for (const Column& column : kColumns) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  }
  text += "\n";
  for (const HistoryPoint& point : points) {
    const char* before = "";
    for (const Column& column : kColumns) {
      const auto value = column.value(point);
      text += std::exchange(before, ",");
      if (value) text += fmt::format("{:.12g}", *value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

Result<std::string> write_history(const LoadHistory& history, const HistoryRequest& request) {
  const auto* points = history.points(request.step);
  if (points == nullptr) return fail(Errc::NotFound, "step: only 10, 60 and 600 are kept");
  if (request.as_csv) return csv(*points);
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("schema", "scored.history/1");
  json.field("step_s", in_seconds(request.step)).key("columns").begin_array();
  for (const Column& column : kColumns) json.value(column.name);
  json.end_array().key("rows").begin_array();
  for (const HistoryPoint& point : *points) {
    json.begin_array();
    for (const Column& column : kColumns) json.value(column.value(point));
    json.end_array();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace score::monitor
