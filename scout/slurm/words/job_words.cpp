#include "scout/slurm/words/job_words.hpp"

#include "base/model/model.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "scout/session/words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <pwd.h>
#include <utility>

namespace score::scout::slurm {

using base::JobState;
using wire::JobStatus;

namespace {

constexpr std::array<StateWords, 12> kStates = {{
    {"PENDING", "PD"},
    {"CONFIGURING", "CF"},
    {"RUNNING", "R"},
    {"SUSPENDED", "S"},
    {"COMPLETING", "CG"},
    {"COMPLETED", "CD"},
    {"FAILED", "F"},
    {"CANCELLED", "CA"},
    {"TIMEOUT", "TO"},
    {"NODE_FAIL", "NF"},
    {"FAILED", "F"},
    {"OUT_OF_MEMORY", "OOM"},
}};
static_assert(kStates.size() == base::kJobStateWords.size());

constexpr int kOutOfMemoryExit = 125;  // the number that Slurm's programs expect

struct ReasonWord {
  std::string_view begin;  // of the head's reason
  std::string_view word;
};

// The first one that fits counts.
constexpr std::array kReasons = {
    ReasonWord{"can never start", "DependencyNeverSatisfied"},
    ReasonWord{"waits for job", "Dependency"},
    ReasonWord{"waits for one of", "Dependency"},
    ReasonWord{"waits for the earlier jobs", "Dependency"},
    ReasonWord{"starts at", "BeginTime"},
    ReasonWord{"held", "JobHeldUser"},
    ReasonWord{"the maximum of its tasks", "JobArrayTaskLimit"},
    ReasonWord{"reserv", "Reservation"},
    ReasonWord{"waits for reservation", "Reservation"},
};

JobState state_of(const JobStatus& job) {
  return static_cast<JobState>(job.state());
}

std::string upper(std::string_view word) {
  std::string text;
  for (const char c : word) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

struct Clock {
  std::int64_t days, hours, minutes, seconds;
};

Clock clock_of(std::int64_t ns) {
  const std::int64_t all = std::max<std::int64_t>(ns, 0) / 1'000'000'000;
  return {all / 86'400, all / 3'600 % 24, all / 60 % 60, all % 60};
}

std::string_view end_reason(JobState state) {
  switch (state) {
    case JobState::Failed:
      return "NonZeroExitCode";
    case JobState::TimedOut:
      return "TimeLimit";
    case JobState::NodeFailed:
      return "NodeDown";
    case JobState::LaunchFailed:
      return "JobLaunchFailure";
    case JobState::OutOfMemory:
      return "OutOfMemory";
    default:
      return "None";
  }
}

}  // namespace

StateWords state_words(std::uint32_t job_state) {
  return job_state < kStates.size() ? kStates.at(job_state) : StateWords{"UNKNOWN", "UN"};
}

bool is_state(std::string_view word, std::uint32_t job_state) {
  const StateWords words = state_words(job_state);
  const std::string wanted = upper(word);
  return wanted == words.full || wanted == words.compact || wanted == "ALL";
}

bool is_state_word(std::string_view word) {
  for (std::uint32_t state = 0; state < kStates.size(); ++state) {
    if (is_state(word, state)) return true;
  }
  // States of Slurm in which no job is here.
  constexpr std::array<std::string_view, 26> kOthers = {
      "BOOT_FAIL",   "BF", "DEADLINE",     "DL", "PREEMPTED",    "PR", "RESV_DEL_HOLD", "RD",
      "REQUEUE_FED", "RF", "REQUEUE_HOLD", "RH", "REQUEUED",     "RQ", "RESIZING",      "RS",
      "REVOKED",     "RV", "SIGNALING",    "SI", "SPECIAL_EXIT", "SE", "STAGE_OUT",     "SO",
      "STOPPED",     "ST"};
  return std::ranges::find(kOthers, upper(word)) != kOthers.end();
}

std::string id_words(const JobStatus& job) {
  if (job.array_job() == 0) return std::to_string(job.job());
  if (job.array_job() != job.job()) {
    return fmt::format("{}_{}", job.array_job(), job.array_task());
  }
  if (job.array().waiting().empty()) return std::to_string(job.job());
  return fmt::format("{}_[{}]", job.job(), job.array().waiting());
}

std::uint64_t array_number(const JobStatus& job) {
  return job.array_job() != 0 ? job.array_job() : job.job();
}

bool has_row(const JobStatus& job) {
  return job.array_job() != job.job() || job.array_job() == 0 || !job.array().waiting().empty();
}

std::string queue_time(std::int64_t ns) {
  const Clock clock = clock_of(ns);
  if (clock.days > 0) {
    return fmt::format("{}-{:02}:{:02}:{:02}", clock.days, clock.hours, clock.minutes,
                       clock.seconds);
  }
  if (clock.hours > 0)
    return fmt::format("{}:{:02}:{:02}", clock.hours, clock.minutes, clock.seconds);
  return fmt::format("{}:{:02}", clock.minutes, clock.seconds);
}

std::string record_time(std::int64_t ns) {
  const Clock clock = clock_of(ns);
  const auto day = clock.days > 0 ? fmt::format("{}-", clock.days) : std::string();
  return fmt::format("{}{:02}:{:02}:{:02}", day, clock.hours, clock.minutes, clock.seconds);
}

std::string limit_words(const JobStatus& job, std::string (*form)(std::int64_t)) {
  return job.wall_limit_ns() > 0 ? form(job.wall_limit_ns()) : "UNLIMITED";
}

std::string moment(std::int64_t wall_ns, std::string_view unknown) {
  if (wall_ns == 0) return std::string(unknown);
  std::string text = local_time(wall_ns);
  std::ranges::replace(text, ' ', 'T');
  return text;
}

std::string exit_words(std::uint32_t state, std::int32_t exit_code, std::int32_t signal) {
  const auto how = static_cast<JobState>(state);
  if (how == JobState::OutOfMemory) return fmt::format("0:{}", kOutOfMemoryExit);
  if (!is_final_state(state) || how == JobState::Cancelled || how == JobState::TimedOut) {
    return fmt::format("0:{}", signal);
  }
  return signal != 0 ? fmt::format("0:{}", signal) : fmt::format("{}:0", exit_code);
}

std::string reason_word(const JobStatus& job) {
  const JobState state = state_of(job);
  if (is_final_state(job.state())) return std::string(end_reason(state));
  if (state != JobState::Pending) return "None";
  if (job.reasons().empty()) return "None";
  for (const ReasonWord& known : kReasons) {
    const auto begins = [&](const std::string& reason) { return reason.starts_with(known.begin); };
    if (std::ranges::any_of(job.reasons(), begins)) return std::string(known.word);
  }
  return "Resources";
}

std::string record_state(const JobStatus& job) {
  if (state_of(job) == JobState::Launching) return "PENDING";
  if (state_of(job) == JobState::Completing) return "RUNNING";
  if (state_of(job) != JobState::Cancelled) return std::string(state_words(job.state()).full);
  constexpr std::string_view kBy = "cancelled by ";
  for (const std::string& reason : job.reasons()) {
    if (!reason.starts_with(kBy)) continue;
    const std::string name = reason.substr(kBy.size());
    if (const auto number = parse_number<std::uint32_t>(name)) {
      return fmt::format("CANCELLED by {}", *number);
    }
    if (const passwd* user = getpwnam(name.c_str())) {
      return fmt::format("CANCELLED by {}", user->pw_uid);
    }
  }
  return fmt::format("CANCELLED by {}", job.user());
}

std::uint32_t core_count(const JobStatus& job) {
  return job.cores() > 0 ? job.cores() : job.tasks() * std::max(1U, job.cpus_per_task());
}

std::uint32_t node_count(const JobStatus& job) {
  if (job.nodes_size() > 0) return static_cast<std::uint32_t>(job.nodes_size());
  return std::max(1U, job.nodes_wanted());
}

std::string memory_words(const JobStatus& job) {
  if (job.memory_per_node_bytes() == 0) return "0";
  return fmt::format("{}M", job.memory_per_node_bytes() >> 20U);
}

std::string resource_words(const JobStatus& job) {
  std::string text = fmt::format("cpu={}", core_count(job));
  const std::uint64_t memory = job.memory_per_node_bytes() >> 20U;
  if (memory > 0) text += fmt::format(",mem={}M", memory * node_count(job));
  text += fmt::format(",node={},billing={}", node_count(job), core_count(job));
  for (const auto& kind : job.generic()) {
    text += fmt::format(",gres/{}={}", kind.name(), kind.count() * node_count(job));
  }
  return text;
}

std::string generic_words(const JobStatus& job) {
  std::string text;
  for (const auto& kind : job.generic()) {
    text += fmt::format("{}gres/{}:{}", text.empty() ? "" : ",", kind.name(), kind.count());
  }
  return text.empty() ? "N/A" : text;
}

}  // namespace score::scout::slurm
