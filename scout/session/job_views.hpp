// One job as a row of a table, as JSON and as a page.
#pragma once

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"
#include "scout/session/text_table.hpp"

#include <string>
#include <vector>

namespace score::scout {

const std::vector<Column<wire::JobStatus>>& job_columns();
// All fields; see scout/JSON.md.
void write_job(JsonWriter& json, const wire::JobStatus& job);
std::string job_page(const wire::JobStatus& job);
// In one line, schema scored.job/1 without the events.
std::string job_document(const wire::JobStatus& job);
// "12"; "12.0" of a step, "12_7" of a task of an array.
std::string job_id(const wire::JobStatus& job);
// "8 run, 91 wait, 1 ended"; "" unless it is an array.
std::string array_text(const wire::JobStatus& job);
// "node[00-07]", "" before placement.
std::string node_list(const wire::JobStatus& job);
// "busy", "idle" or "deadlocked"; empty unless the job is running.
std::string_view activity_word(const wire::JobStatus& job);
bool is_deadlocked(const wire::JobStatus& job);
// Why it waits, or why it ended; "; " between.
std::string all_reasons(const wire::JobStatus& job);

}  // namespace score::scout
