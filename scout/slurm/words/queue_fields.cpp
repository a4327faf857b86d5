#include "scout/slurm/words/queue_fields.hpp"

#include "scout/session/job_views.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace score::scout::slurm {

namespace {

using wire::JobStatus;

std::string nodes_of(const JobStatus& job) {
  return node_list(job);
}

// Returns the nodes; for a job that has none, why.
std::string nodes_or_reason(const JobStatus& job) {
  const std::string reason = reason_word(job);
  if (job.nodes_size() > 0 && (reason == "None" || !is_final_state(job.state())))
    return node_list(job);
  return fmt::format("({})", reason);
}

std::string partition(const JobStatus& job) {
  return std::string(queue_word(job.queue()));
}

std::string first_node(const JobStatus& job) {
  return job.nodes_size() > 0 ? job.nodes(0) : "n/a";
}

std::string left(const JobStatus& job) {
  if (job.wall_limit_ns() == 0) return "UNLIMITED";
  return queue_time(std::max<std::int64_t>(0, job.wall_limit_ns() - job.elapsed_ns()));
}

std::string start_time(const JobStatus& job) {
  return moment(job.started_wall_ns() > 0 ? job.started_wall_ns() : job.expected_start_wall_ns(),
                "N/A");
}

std::string end_time(const JobStatus& job) {
  const bool has_bound = job.started_wall_ns() > 0 && job.wall_limit_ns() > 0;
  if (job.ended_wall_ns() > 0) return moment(job.ended_wall_ns(), "N/A");
  return moment(has_bound ? job.started_wall_ns() + job.wall_limit_ns() : 0, "N/A");
}

std::string account(const JobStatus& job) {
  return job.account().empty() ? "(null)" : job.account();
}

std::string reservation(const JobStatus& job) {
  return job.reservation().empty() ? "(null)" : job.reservation();
}

std::string features(const JobStatus& job) {
  std::string text;
  for (const auto& feature : job.features()) text += (text.empty() ? "" : "&") + feature;
  return text.empty() ? "(null)" : text;
}

std::string array_task(const JobStatus& job) {
  if (job.array_job() == 0) return "N/A";
  return job.array_job() == job.job() ? job.array().waiting() : std::to_string(job.array_task());
}

std::string dependency(const JobStatus& job) {
  return reason_word(job).starts_with("Dependency") ? all_reasons(job) : "(null)";
}

template <std::string_view StateWords::*Form>
std::string state(const JobStatus& job) {
  return std::string(state_words(job.state()).*Form);
}

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string limit(const JobStatus& job) {
  return limit_words(job, queue_time);
}

std::string null_text(const JobStatus& /*job*/) {
  return "(null)";
}

std::string not_applicable(const JobStatus& /*job*/) {
  return "N/A";
}

std::string job_number(const JobStatus& job) {
  return number(job.job());
}

std::string user(const JobStatus& job) {
  return job.user_name().empty() ? number(job.user()) : job.user_name();
}

std::string cores(const JobStatus& job) {
  return number(core_count(job));
}

std::string command(const JobStatus& job) {
  return job.command();
}

using JobField = Field<JobStatus>;

constexpr std::array kFields = {
    JobField{'i', "JobArrayID", "JOBID", id_words},
    JobField{'A', "JobID", "JOBID", job_number},
    JobField{'F', "ArrayJobID", "ARRAY_JOB_ID",
             [](const JobStatus& j) { return number(array_number(j)); }},
    JobField{'K', "ArrayTaskID", "ARRAY_TASK_ID", array_task},
    JobField{'P', "Partition", "PARTITION", partition},
    JobField{'j', "Name", "NAME", [](const JobStatus& j) -> std::string { return j.name(); }},
    JobField{0, "JobName", "NAME", [](const JobStatus& j) -> std::string { return j.name(); }},
    JobField{'u', "UserName", "USER", user},
    JobField{'U', "UserID", "UID", [](const JobStatus& j) { return number(j.user()); }},
    JobField{'t', "StateCompact", "ST", state<&StateWords::compact>},
    JobField{'T', "State", "STATE", state<&StateWords::full>},
    JobField{'M', "TimeUsed", "TIME",
             [](const JobStatus& j) { return queue_time(j.elapsed_ns()); }},
    JobField{'l', "TimeLimit", "TIME_LIMIT", limit},
    JobField{'L', "TimeLeft", "TIME_LEFT", left},
    JobField{'D', "NumNodes", "NODES", [](const JobStatus& j) { return number(node_count(j)); }},
    JobField{'C', "NumCPUs", "CPUS", cores},
    JobField{0, "NumTasks", "TASKS", [](const JobStatus& j) { return number(j.tasks()); }},
    JobField{0, "cpus-per-task", "CPUS_PER_TASK",
             [](const JobStatus& j) { return number(std::max(1U, j.cpus_per_task())); }},
    JobField{'R', "ReasonList", "NODELIST(REASON)", nodes_or_reason},
    JobField{'N', "NodeList", "NODELIST", nodes_of},
    JobField{'r', "Reason", "REASON", reason_word},
    JobField{'S', "StartTime", "START_TIME", start_time},
    JobField{'e', "EndTime", "END_TIME", end_time},
    JobField{'V', "SubmitTime", "SUBMIT_TIME",
             [](const JobStatus& j) { return moment(j.submitted_wall_ns(), "N/A"); }},
    JobField{'a', "Account", "ACCOUNT", account},
    JobField{'m', "MinMemory", "MIN_MEMORY", memory_words},
    JobField{'Q', "PriorityLong", "PRIORITY",
             [](const JobStatus& j) { return std::to_string(j.priority()); }},
    JobField{'p', "Priority", "PRIORITY",
             [](const JobStatus& j) { return std::to_string(j.priority()); }},
    JobField{'q', "QOS", "QOS", [](const JobStatus& /*job*/) -> std::string { return "normal"; }},
    JobField{'Z', "WorkDir", "WORK_DIR",
             [](const JobStatus& j) -> std::string { return j.directory(); }},
    JobField{'o', "Command", "COMMAND", command},
    JobField{'f', "Feature", "FEATURES", features},
    JobField{'b', "tres-per-node", "TRES_PER_NODE", generic_words},
    JobField{0, "tres", "TRES_ALLOC", resource_words},
    JobField{0, "tres-alloc", "TRES_ALLOC", resource_words},
    JobField{'v', "Reservation", "RESERVATION", reservation},
    JobField{'B', "BatchHost", "EXEC_HOST", first_node},
    JobField{'E', "Dependency", "DEPENDENCY", dependency},
    JobField{'k', "Comment", "COMMENT", null_text},
    JobField{'w', "WCKey", "WCKEY", null_text},
    JobField{'g', "GroupName", "GROUP", not_applicable},
    JobField{'h', "OverSubscribe", "OVER_SUBSCRIBE",
             [](const JobStatus& /*job*/) -> std::string { return "OK"; }},
    JobField{'c', "MinCpus", "MIN_CPUS",
             [](const JobStatus& j) { return number(std::max(1U, j.cpus_per_task())); }},
    JobField{'d', "MinTmpDisk", "MIN_TMP_DISK",
             [](const JobStatus& /*job*/) -> std::string { return "0"; }},
    JobField{'y', "Nice", "NICE", [](const JobStatus& j) { return std::to_string(-j.priority()); }},
    JobField{0, "exit_code", "EXIT_CODE",
             [](const JobStatus& j) { return exit_words(j.state(), j.exit_code(), j.signal()); }},
    JobField{0, "RestartCnt", "RESTART_COUNT",
             [](const JobStatus& j) { return number(j.restarts()); }},
};

}  // namespace

std::span<const Field<JobStatus>> queue_fields() {
  return kFields;
}

}  // namespace score::scout::slurm
