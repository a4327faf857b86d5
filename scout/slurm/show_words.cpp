#include "scout/slurm/show_words.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace score::scout::slurm {

namespace {

using Lines = std::vector<std::string>;

// The first line begins at the margin, and the others are indented.
std::string joined(const Lines& lines, ShowStyle style) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += style.one_line ? " " : "\n   ";
    text += escape_terminal(line, 65'536);
  }
  return text + (style.one_line ? "\n" : "\n\n");
}

std::string or_null(const std::string& text) {
  return text.empty() ? "(null)" : text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

constexpr int kMinJobAge_s = 3'600;

}  // namespace

std::string show_job(const wire::JobStatus& job, ShowStyle style) {
  Lines lines;
  const auto add = [&lines](std::string line) { lines.push_back(std::move(line)); };
  std::string id = fmt::format("JobId={}", job.job());
  if (job.array_job() != 0) {
    const bool is_task = job.array_job() != job.job();
    id += fmt::format(" ArrayJobId={} ArrayTaskId={}", job.array_job(),
                      is_task ? std::to_string(job.array_task()) : job.array().waiting());
  }
  add(fmt::format("{} JobName={}", id, job.name()));
  add(fmt::format("UserId={}({})", job.user_name(), job.user()));
  add(fmt::format("Priority={} Nice={} Account={} QOS=normal WCKey=(null)", job.priority(),
                  -job.priority(), or_null(job.account())));
  add(fmt::format("JobState={} Reason={} Dependency=(null)", state_words(job.state()).full,
                  reason_word(job)));
  add(fmt::format("Requeue=1 Restarts={} BatchFlag={} Reboot=0 ExitCode={}", job.restarts(),
                  job.allocation() ? 1 : 0,
                  exit_words(job.state(), job.exit_code(), job.signal())));
  add(fmt::format("RunTime={} TimeLimit={} TimeMin=N/A", record_time(job.elapsed_ns()),
                  limit_words(job, record_time)));
  add(fmt::format("SubmitTime={} EligibleTime={}", moment(job.submitted_wall_ns(), "Unknown"),
                  moment(job.submitted_wall_ns(), "Unknown")));
  const std::int64_t start =
      job.started_wall_ns() > 0 ? job.started_wall_ns() : job.expected_start_wall_ns();
  const bool has_bound = job.started_wall_ns() > 0 && job.wall_limit_ns() > 0;
  const std::int64_t end = job.ended_wall_ns() > 0 ? job.ended_wall_ns()
                           : has_bound             ? job.started_wall_ns() + job.wall_limit_ns()
                                                   : 0;
  add(fmt::format("StartTime={} EndTime={} Deadline=N/A", moment(start, "Unknown"),
                  moment(end, "Unknown")));
  add(fmt::format("Partition={} AllocNode:Sid=N/A:0", queue_word(job.queue())));
  add("ReqNodeList=(null) ExcNodeList=(null)");
  add(fmt::format("NodeList={}", job.nodes_size() > 0 ? node_list(job) : "(null)"));
  if (job.nodes_size() > 0) add(fmt::format("BatchHost={}", job.nodes(0)));
  add(fmt::format("NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:*:*",
                  node_count(job), core_count(job), job.tasks(),
                  std::max(1U, job.cpus_per_task())));
  add("TRES=" + resource_words(job));
  add(fmt::format("MinCPUsNode={} MinMemoryNode={} MinTmpDiskNode=0",
                  std::max(1U, job.cpus_per_task()), memory_words(job)));
  add("OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)");
  add("Command=" + job.command());
  add("WorkDir=" + job.directory());
  if (!job.generic().empty()) add("TresPerNode=" + generic_words(job));
  return joined(lines, style);
}

std::string show_node(const NodeRow& node, const wire::Info& info, ShowStyle style) {
  const auto& status = node.status;
  Lines lines;
  const auto add = [&lines](std::string line) { lines.push_back(std::move(line)); };
  std::string features;
  for (const auto& feature : status.features()) features += (features.empty() ? "" : ",") + feature;
  std::string generic;
  for (const auto& kind : status.generic()) {
    generic += fmt::format("{}{}:{}", generic.empty() ? "" : ",", kind.name(), kind.count());
  }
  std::string state = upper(node_state(node));
  if (status.drained() && status.state() == wire::NodeStatus::UP) {
    state = node.used_cores > 0 ? "MIXED+DRAIN" : "IDLE+DRAIN";
  }
  add(fmt::format("NodeName={} Arch=x86_64 CoresPerSocket={}", status.name(), status.cores()));
  add(fmt::format("CPUAlloc={} CPUEfctv={} CPUTot={} CPULoad=N/A", node.used_cores, status.cores(),
                  status.cores()));
  add("AvailableFeatures=" + or_null(features));
  add("ActiveFeatures=" + or_null(features));
  add("Gres=" + or_null(generic));
  add(fmt::format("NodeAddr={} NodeHostName={} Version={}", status.name(), status.name(),
                  info.version()));
  add(fmt::format("RealMemory={} AllocMem={} FreeMem={} Sockets=1 Boards=1",
                  status.memory_bytes() >> 20U, status.memory_reserved_bytes() >> 20U,
                  (status.memory_bytes() - status.memory_reserved_bytes()) >> 20U));
  add(fmt::format("State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A", state));
  std::string partitions;
  for (const auto& name : partitions_of(info)) partitions += (partitions.empty() ? "" : ",") + name;
  add("Partitions=" + partitions);
  add(fmt::format("CfgTRES=cpu={},mem={}M,billing={}", status.cores(), status.memory_bytes() >> 20U,
                  status.cores()));
  if (!status.reason().empty()) add("Reason=" + status.reason());
  return joined(lines, style);
}

std::string show_partition(const std::string& name, const ClusterRows& rows, ShowStyle style) {
  Lines lines;
  std::vector<std::string> names;
  std::uint64_t cores = 0;
  for (const NodeRow& node : rows.nodes) {
    names.emplace_back(node.status.name());
    cores += node.status.cores();
  }
  const bool is_default = name == kDefaultPartition;
  lines.push_back("PartitionName=" + name);
  lines.emplace_back("AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL");
  lines.push_back(fmt::format("AllocNodes=ALL Default={} QoS=N/A", is_default ? "YES" : "NO"));
  lines.emplace_back("DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO");
  lines.emplace_back("MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO");
  lines.push_back("Nodes=" + compress_hostlist(names));
  lines.emplace_back("PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=YES");
  lines.push_back(fmt::format("State=UP TotalCPUs={} TotalNodes={} SelectTypeParameters=NONE",
                              cores, rows.nodes.size()));
  lines.emplace_back("DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED");
  return joined(lines, style);
}

std::string show_config(const wire::Info& info) {
  std::string text =
      "Configuration data as of " + moment(wall_now().time_since_epoch().count(), "Unknown") + "\n";
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<23} = {}\n", name, escape_terminal(value, 200));
  };
  add("ClusterName", info.cluster());
  add("MaxArraySize", "1000001");
  add("MaxJobCount", std::to_string(info.max_jobs()));
  add("MinJobAge", fmt::format("{} sec", kMinJobAge_s));
  add("SchedulerType", "scored/gang");
  add("SchedulerTimeSlice", fmt::format("{} sec", to_seconds(info.quantum_ns())));
  add("SLURM_VERSION", "23.11.0");
  return text;
}

}  // namespace score::scout::slurm
