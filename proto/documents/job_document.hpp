// Writes the state of jobs as JSON; scout/JSON.md describes the fields.
#pragma once

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <string>

namespace score::proto {

// Writes all fields of the job as one object.
void write_job(JsonWriter& json, const wire::JobStatus& job);
// Writes the document scored.jobs/1.
void write_jobs(JsonWriter& json, const wire::JobList& list);
// Writes the document scored.plan/1: what a submission would do now.
void write_plan(JsonWriter& json, const wire::Planned& planned);
// Returns the job in one line of JSON, schema scored.job/1 without the events.
[[nodiscard]] std::string job_document(const wire::JobStatus& job);

// They return the texts of the options that requested these resources.
[[nodiscard]] std::string constraint_text(const wire::JobStatus& job);
[[nodiscard]] std::string generic_text(const wire::JobStatus& job);
[[nodiscard]] std::string license_text(const wire::JobStatus& job);

// Returns "busy", "idle" or "deadlocked"; empty unless the job is running.
[[nodiscard]] std::string_view activity_word(const wire::JobStatus& job);
// Returns where its memory is: "in-memory", "parking", "parked" or "returning".
[[nodiscard]] std::string_view residence_word(const wire::JobStatus& job);

}  // namespace score::proto
