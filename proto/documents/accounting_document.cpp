// This module is tested by accounting_document_test.cpp, test_accounting.py and test_api.py.
#include "proto/documents/accounting_document.hpp"

#include "base/model/model.hpp"
#include "base/text/plain.hpp"
#include "proto/documents/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::proto {

using wire::AccountingRow;

std::int64_t elapsed_ns(const AccountingRow& row) {
  return row.started_wall_ns() > 0 ? row.ended_wall_ns() - row.started_wall_ns() : 0;
}

double share_of(const AccountingRow& row) {
  const auto elapsed = elapsed_ns(row);
  return elapsed > 0
             ? std::min(1.0, static_cast<double>(row.scheduled_ns()) / static_cast<double>(elapsed))
             : 0;
}

// Older heads did not record cores; then one core per task is assumed.
double core_hours_of(const AccountingRow& row) {
  constexpr double kHourNs = 3.6e12;
  const std::uint32_t cores = row.cores() > 0 ? row.cores() : row.tasks();
  return static_cast<double>(row.scheduled_ns()) / kHourNs * cores;
}

bool is_out_of_memory(const AccountingRow& row) {
  return row.state() == static_cast<std::uint32_t>(JobState::OutOfMemory);
}

void write_record(JsonWriter& json, const AccountingRow& row) {
  json.begin_object();
  json.field("job", row.job());
  if (row.array_job() != 0) json.field("array_job", row.array_job());
  if (row.array_job() != 0 && row.array_job() != row.job()) {
    json.field("array_task", row.array_task());
  }
  json.field("user", row.user_name()).field("uid", row.user());
  json.field("account", row.account());
  json.field("name", row.name()).field("state", state_word(row.state()));
  json.field("exit_code", row.exit_code()).field("signal", row.signal());
  json.field("nodes", row.node_count());
  json.field("nodelist", row.nodes()).field("tasks", row.tasks());
  json.field("elapsed_s", to_seconds(elapsed_ns(row)));
  json.field("scheduled_s", to_seconds(row.scheduled_ns()));
  json.field("filled_s", to_seconds(row.filled_ns()));
  json.field("share", share_of(row));
  if (const auto usage = usage_in(row)) {
    json.field("cpu_s", to_seconds((usage->cpu_user + usage->cpu_system).count()));
    base::write_usage(json, *usage);
  }
  json.field("out_of_memory", is_out_of_memory(row));
  json.field("gres", row.generic());
  if (!row.partition().empty()) json.field("partition", row.partition());
  if (!row.licenses().empty()) json.field("licenses", row.licenses());
  json.field("cores", row.cores()).field("core_hours", core_hours_of(row));
  json.field("restarts", row.restarts());
  write_moment(json, "submitted_unix_s", row.submitted_wall_ns());
  write_moment(json, "started_unix_s", row.started_wall_ns());
  write_moment(json, "ended_unix_s", row.ended_wall_ns());
  json.end_object();
}

namespace {

std::string csv_cell(const std::string& raw) {
  const std::string text = valid_utf8(raw);
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string seconds_cell(std::int64_t ns) {
  return fmt::format("{:.3f}", to_seconds(ns));
}

}  // namespace

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) (line += line.empty() ? "" : ",") += csv_cell(cell);
  return line + "\n";
}

std::string csv_header() {
  return "job,user,account,name,state,exit_code,signal,nodes,nodelist,tasks,cores,"
         "submitted_unix_s,started_unix_s,ended_unix_s,elapsed_s,scheduled_s,filled_s,core_hours,"
         "cpu_s,memory_peak_bytes,restarts\n";
}

std::string csv_record(const AccountingRow& row) {
  const auto usage = usage_in(row);
  return csv_line({std::to_string(row.job()),
                   row.user_name(),
                   row.account(),
                   row.name(),
                   std::string(state_word(row.state())),
                   std::to_string(row.exit_code()),
                   std::to_string(row.signal()),
                   std::to_string(row.node_count()),
                   row.nodes(),
                   std::to_string(row.tasks()),
                   std::to_string(row.cores()),
                   seconds_cell(row.submitted_wall_ns()),
                   seconds_cell(row.started_wall_ns()),
                   seconds_cell(row.ended_wall_ns()),
                   seconds_cell(elapsed_ns(row)),
                   seconds_cell(row.scheduled_ns()),
                   seconds_cell(row.filled_ns()),
                   fmt::format("{:.6f}", core_hours_of(row)),
                   usage ? seconds_cell((usage->cpu_user + usage->cpu_system).count()) : "",
                   usage ? std::to_string(usage->memory_peak.value()) : "",
                   std::to_string(row.restarts())});
}

}  // namespace score::proto
