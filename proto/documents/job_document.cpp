// This module is tested by words_test.cpp of scout, test_queries.py and test_api.py.
// Writes the state of jobs as JSON.
#include "proto/documents/job_document.hpp"

#include "base/model/resources.hpp"
#include "base/model/usage.hpp"
#include "proto/convert/words.hpp"
#include "proto/documents/words.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace score::proto {

using wire::JobStatus;

std::string_view activity_word(const JobStatus& job) {
  if (state_word(job.state()) != "running") return "";
  return word_of(job.activity());
}

std::string_view residence_word(const JobStatus& job) {
  // By the numbers of gang::Residence.
  constexpr std::array<std::string_view, 4> kWords = {"in-memory", "parking", "parked",
                                                      "returning"};
  return job.residence() < kWords.size() ? kWords.at(job.residence()) : "unknown";
}

std::string constraint_text(const JobStatus& job) {
  const std::vector<std::string> features(job.features().begin(), job.features().end());
  return format_constraint(features);
}

std::string generic_text(const JobStatus& job) {
  std::vector<GenericResource> generic;
  for (const auto& one : job.generic()) {
    generic.push_back({one.name(), one.count(), Bytes(one.memory_bytes())});
  }
  return format_generic(generic);
}

std::string license_text(const JobStatus& job) {
  std::vector<License> licenses;
  for (const auto& one : job.licenses()) licenses.push_back({one.name(), one.count()});
  return format_licenses(licenses);
}

namespace {

void write_array(JsonWriter& json, const wire::ArrayStatus& array) {
  json.key("array").begin_object().field("waiting", array.waiting());
  json.field("waiting_count", array.waiting_count()).field("running_count", array.running_count());
  json.field("completed_count", array.completed_count());
  json.field("failed_count", array.failed_count()).end_object();
}

void write_explanation(JsonWriter& json, const JobStatus& job) {
  if (!job.share_reason().empty()) json.field("share_reason", job.share_reason());
  if (job.expected_start_wall_ns() == 0) return;
  write_moment(json, "expected_start_unix_s", job.expected_start_wall_ns());
}

std::string_view kind_of_end(const wire::TaskExit& exit) {
  return exit.signal() != 0 ? "signal" : "exit";
}

void write_steps(JsonWriter& json, const JobStatus& job) {
  json.key("steps").begin_array();
  for (const auto& step : job.steps()) {
    json.begin_object().field("step", step.step()).field("job", step.job());
    json.field("name", step.name()).field("state", state_word(step.state()));
    json.field("exit_code", step.exit_code()).field("signal", step.signal());
    json.field("tasks", step.tasks());
    json.field("nodes", step.nodes()).field("elapsed_s", to_seconds(step.elapsed_ns()));
    json.end_object();
  }
  json.end_array();
}

void write_paging(JsonWriter& json, const JobStatus& job) {
  json.field("residence", residence_word(job)).field("parked_bytes", job.parked_bytes());
  json.field("paged_out_bytes", job.paged_out_bytes());
  json.field("paged_in_bytes", job.paged_in_bytes());
  json.field("paging_s", to_seconds(job.paging_ns()));
  json.field("parked_s", to_seconds(job.parked_ns()));
}

}  // namespace

void write_job(JsonWriter& json, const JobStatus& job) {
  json.begin_object();
  json.field("job", job.job());
  if (job.array_job() != 0) json.field("array_job", job.array_job());
  if (job.array_job() != 0 && job.array_job() != job.job()) {
    json.field("array_task", job.array_task());
  }
  if (job.has_array()) write_array(json, job.array());
  json.field("user", job.user_name()).field("uid", job.user());
  if (!job.account().empty()) json.field("account", job.account());
  if (job.features_size() > 0) json.field("constraint", constraint_text(job));
  if (job.generic_size() > 0) json.field("gres", generic_text(job));
  if (job.scratch_bytes() > 0) json.field("scratch_bytes", job.scratch_bytes());
  if (!job.reservation().empty()) json.field("reservation", job.reservation());
  if (!job.partition().empty()) json.field("partition", job.partition());
  if (job.licenses_size() > 0) json.field("licenses", license_text(job));
  json.field("name", job.name()).field("command", job.command());
  json.field("directory", job.directory());
  json.field("state", state_word(job.state())).field("final", is_final_state(job.state()));
  json.field("activity", activity_word(job)).field("background", job.background());
  json.field("restarts", job.restarts());
  json.list("reasons", job.reasons()).list("waits", job.waits());
  json.field("tasks", job.tasks()).list("nodes", job.nodes());
  json.field("nodes_wanted", job.nodes_wanted());
  json.list("tasks_on_node", job.tasks_on_node());
  json.field("tasks_per_core", std::max(1U, job.tasks_per_core()));
  if (job.slot() >= 0) json.field("slot", job.slot());
  json.field("rows_used", job.rows_used()).field("share", job.share());
  json.field("slices", job.slices()).field("weight", job.weight());
  json.field("queue", queue_word(job.queue())).field("priority", job.priority());
  json.field("scheduled_s", to_seconds(job.scheduled_ns()));
  json.field("filled_s", to_seconds(job.filled_ns())).field("no_fill", job.no_fill());
  json.field("equal_share", job.equal_share());
  write_paging(json, job);
  json.field("elapsed_s", to_seconds(job.elapsed_ns()));
  json.field("scheduled_limit_s", to_seconds(job.scheduled_limit_ns()));
  json.field("wall_limit_s", to_seconds(job.wall_limit_ns()));
  if (job.limit_signal() != 0) {
    json.key("limit_signal").begin_object().field("signal", job.limit_signal());
    json.field("before_s", to_seconds(job.limit_signal_before_ns()));
    json.field("script_only", job.limit_signal_script()).end_object();
  }
  json.field("cores", job.cores()).field("memory_per_node_bytes", job.memory_per_node_bytes());
  if (const auto usage = usage_in(job)) {
    json.key("usage").begin_object();
    write_usage(json, *usage);
    json.end_object();
  }
  if (job.step_of() != 0) json.field("step_of", job.step_of()).field("step", job.step());
  if (job.allocation()) write_steps(json, job);
  write_explanation(json, job);
  write_moment(json, "submitted_unix_s", job.submitted_wall_ns());
  write_moment(json, "started_unix_s", job.started_wall_ns());
  write_moment(json, "ended_unix_s", job.ended_wall_ns());
  json.field("exit_code", job.exit_code()).field("signal", job.signal());
  json.key("failed_tasks").begin_array();
  for (const auto& exit : job.failed_tasks()) {
    json.begin_object().field("rank", exit.rank());
    json.field(kind_of_end(exit), exit.signal() != 0 ? exit.signal() : exit.code()).end_object();
  }
  json.end_array().end_object();
}

void write_jobs(JsonWriter& json, const wire::JobList& list) {
  json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
  for (const auto& job : list.jobs()) write_job(json, job);
  json.end_array().field("truncated", list.truncated()).end_object();
}

void write_plan(JsonWriter& json, const wire::Planned& planned) {
  json.begin_object().field("schema", "scored.plan/1").field("starts", planned.starts());
  json.list("reasons", planned.reasons()).field("tasks", planned.tasks());
  json.list("nodes", planned.nodes()).list("tasks_on_node", planned.tasks_on_node());
  json.field("tasks_per_core", std::max(1U, planned.tasks_per_core()));
  if (planned.slot() >= 0) json.field("slot", planned.slot());
  if (!planned.starts()) {
    write_moment(json, "expected_start_unix_s", planned.expected_start_wall_ns());
  }
  json.end_object();
}

std::string job_document(const JobStatus& job) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("schema", "scored.job/1").key("job");
  write_job(json, job);
  return json.end_object().take();
}

}  // namespace score::proto
