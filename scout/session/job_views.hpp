// Shows one job as a row of a table, as JSON and as a page.
#pragma once

#include "proto/client.pb.h"
#include "proto/documents/job_document.hpp"
#include "scout/session/text_table.hpp"

#include <string>
#include <vector>

namespace score::scout {

const std::vector<TableColumn<wire::JobStatus>>& job_columns();
using proto::activity_word;
using proto::job_document;
using proto::write_job;
using proto::write_jobs;

std::string job_page(const wire::JobStatus& job);
// Returns "12" for a job, "12.0" for a step, "12_7" for a task of an array.
std::string job_id(const wire::JobStatus& job);
// Returns the counts of an array, "8 run, 91 wait, 1 ended"; empty unless the job is an array.
std::string array_text(const wire::JobStatus& job);
// Returns the nodes as a host list, "node[00-07]"; empty before placement.
std::string node_list(const wire::JobStatus& job);
bool is_deadlocked(const wire::JobStatus& job);
// Returns why the job waits or why it ended, with "; " between the reasons.
std::string all_reasons(const wire::JobStatus& job);

}  // namespace score::scout
