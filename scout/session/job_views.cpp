#include "scout/session/job_views.hpp"

#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "proto/convert/words.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace score::scout {

using wire::JobStatus;

using proto::constraint_text;
using proto::generic_text;
using proto::license_text;

bool is_deadlocked(const JobStatus& job) {
  return !activity_word(job).empty() && job.activity() == wire::JobStatus::DEADLOCKED;
}

namespace {

std::string share_percent(const JobStatus& job) {
  return is_final_state(job.state()) ? "" : fmt::format("{:.0f}%", job.share() * 100);
}

std::string exit_text(const JobStatus& job) {
  return is_final_state(job.state()) ? std::to_string(job.exit_code()) : "";
}

std::string end_text(int exit_code, int signal) {
  if (signal == 0) return fmt::format(", exit code {}", exit_code);
  return fmt::format(", exit code {} (signal {})", exit_code, signal);
}

std::string slot_text(const JobStatus& job) {
  return job.slot() < 0 || is_final_state(job.state()) ? "" : std::to_string(job.slot());
}

// Returns where the memory of a job is that is not in memory, or the activity of a running job that
// is idle or deadlocked, else the state.
std::string state_text(const JobStatus& job) {
  if (job.residence() != 0) return std::string(proto::residence_word(job));
  const bool is_shown = job.activity() != wire::JobStatus::BUSY && !activity_word(job).empty();
  return std::string(is_shown ? activity_word(job) : state_word(job.state()));
}

// Returns the number of nodes that the job has, or that it requests while it has none.
std::string nodes_text(const JobStatus& job) {
  const auto nodes =
      job.nodes_size() > 0 ? static_cast<std::uint32_t>(job.nodes_size()) : job.nodes_wanted();
  return nodes > 0 ? std::to_string(nodes) : "";
}

Tint tint_of(const JobStatus& job) {
  return is_deadlocked(job) ? Tint::Bad : state_tint(job.state());
}

std::string range(std::uint32_t from, std::uint32_t to) {
  return from == to ? std::to_string(from) : fmt::format("{}-{}", from, to);
}

// Returns ascending ranks as text: "0-3,7".
std::string rank_list(const std::vector<std::uint32_t>& ranks) {
  std::string list;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    list += (list.empty() ? "" : ",") + range(ranks[i], ranks[end - 1]);
    i = end;
  }
  return list;
}

// Returns one line for each way in which tasks failed.
std::vector<std::string> failure_lines(const JobStatus& job) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>>
      ranks;  // by signal and code
  for (const auto& exit : job.failed_tasks()) {
    ranks[{exit.signal(), exit.signal() != 0 ? 0 : exit.code()}].push_back(exit.rank());
  }
  std::vector<std::string> lines;
  for (const auto& [end, which] : ranks) {
    const auto [signal, code] = end;
    lines.push_back(fmt::format(
        "{} {}: {}", which.size() == 1 ? "rank" : "ranks", rank_list(which),
        signal != 0 ? std::string(signal_word(signal)) : fmt::format("exit code {}", code)));
  }
  return lines;
}

}  // namespace

std::string job_id(const JobStatus& job) {
  if (job.step_of() != 0) return fmt::format("{}.{}", job.step_of(), job.step());
  const bool is_task = job.array_job() != 0 && job.array_job() != job.job();
  if (!is_task) return std::to_string(job.job());
  return fmt::format("{}_{}", job.array_job(), job.array_task());
}

std::string array_text(const JobStatus& job) {
  if (!job.has_array()) return {};
  const auto& array = job.array();
  return fmt::format("{} run, {} wait, {} ended", array.running_count(), array.waiting_count(),
                     array.completed_count() + array.failed_count());
}

std::string node_list(const JobStatus& job) {
  const std::vector<std::string> names(job.nodes().begin(), job.nodes().end());
  return compress_hostlist(names);
}

std::string all_reasons(const JobStatus& job) {
  std::string text;
  for (const auto& reason : job.reasons()) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

namespace {

std::string scratch_text(const JobStatus& job) {
  return job.scratch_bytes() > 0 ? human_bytes(Bytes(job.scratch_bytes())) : "";
}

}  // namespace

const std::vector<TableColumn<JobStatus>>& job_columns() {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  static const std::vector<TableColumn<JobStatus>> columns = {
      {"job", "JOB", kRight, job_id},
      {"user", "USER", kLeft, [](const JobStatus& j) { return j.user_name(); }, true},
      {"account", "ACCOUNT", kLeft, [](const JobStatus& j) { return j.account(); }, true},
      {"partition", "PARTITION", kLeft, [](const JobStatus& j) { return j.partition(); }},
      {"reservation", "RESERVATION", kLeft, [](const JobStatus& j) { return j.reservation(); }},
      {"name", "NAME", kLeft, [](const JobStatus& j) { return j.name(); }, true},
      {"constraint", "CONSTRAINT", kLeft, constraint_text},
      {"gres", "GRES", kLeft, generic_text},
      {"licenses", "LICENSES", kLeft, license_text},
      {"scratch", "SCRATCH", kRight, scratch_text},
      {"state", "STATE", kLeft, state_text, false, tint_of},
      {"activity", "ACTIVITY", kLeft,
       [](const JobStatus& j) { return std::string(activity_word(j)); }},
      {"slot", "SLOT", kRight, slot_text},
      {"rows", "ROWS", kRight, [](const JobStatus& j) { return std::to_string(j.rows_used()); }},
      {"nodes", "NODES", kRight, nodes_text},
      {"tasks", "TASKS", kRight, [](const JobStatus& j) { return std::to_string(j.tasks()); }},
      {"percore", "PERCORE", kRight,
       [](const JobStatus& j) { return std::to_string(std::max(1U, j.tasks_per_core())); }},
      {"share", "SHARE", kRight, share_percent},
      {"slices", "SLICES", kRight, [](const JobStatus& j) { return std::to_string(j.slices()); }},
      {"scheduled", "SCHED", kRight,
       [](const JobStatus& j) { return short_time(j.scheduled_ns()); }},
      {"filled", "FILLED", kRight, [](const JobStatus& j) { return short_time(j.filled_ns()); }},
      {"elapsed", "ELAPSED", kRight, [](const JobStatus& j) { return short_time(j.elapsed_ns()); }},
      {"limit", "LIMIT", kRight,
       [](const JobStatus& j) { return limit_time(j.scheduled_limit_ns()); }},
      {"walllimit", "WALLLIMIT", kRight,
       [](const JobStatus& j) { return limit_time(j.wall_limit_ns()); }},
      {"exit", "EXIT", kRight, exit_text},
      {"signal", "SIGNAL", kRight,
       [](const JobStatus& j) {
         return j.signal() != 0 ? std::to_string(j.signal()) : std::string();
       }},
      {"queue", "QUEUE", kLeft,
       [](const JobStatus& j) { return std::string(queue_word(j.queue())); }},
      {"weight", "WEIGHT", kRight, [](const JobStatus& j) { return std::to_string(j.weight()); }},
      {"priority", "PRIO", kRight, [](const JobStatus& j) { return std::to_string(j.priority()); }},
      {"submitted", "SUBMITTED", kLeft,
       [](const JobStatus& j) { return local_time(j.submitted_wall_ns()); }},
      {"started", "STARTED", kLeft,
       [](const JobStatus& j) { return local_time(j.started_wall_ns()); }},
      {"ended", "ENDED", kLeft, [](const JobStatus& j) { return local_time(j.ended_wall_ns()); }},
      {"nodelist", "NODELIST", kLeft, node_list},
      {"directory", "DIRECTORY", kLeft, [](const JobStatus& j) { return j.directory(); }, true},
      {"command", "COMMAND", kLeft, [](const JobStatus& j) { return j.command(); }, true},
      {"array", "ARRAY", kLeft, array_text},
      {"reason", "REASON", kLeft,
       [](const JobStatus& j) {
         if (!j.has_array() || is_final_state(j.state())) return all_reasons(j);
         return array_text(j) + (j.reasons_size() == 0 ? "" : "; " + all_reasons(j));
       }},
  };
  return columns;
}

std::string step_line(std::uint64_t job, const wire::StepStatus& step) {
  std::string text =
      fmt::format("{}.{} ({}): {}", job, step.step(), step.name(), state_word(step.state()));
  if (is_final_state(step.state())) text += end_text(step.exit_code(), step.signal());
  return text + fmt::format("; {} on {}, {:.1f} s", counted(step.tasks(), "task"),
                            counted(step.nodes(), "node"), to_seconds(step.elapsed_ns()));
}

// Returns tasks and nodes as text: "4 on 2 nodes; 2 tasks share each core".
std::string tasks_text(const JobStatus& job) {
  const bool is_placed = job.nodes_size() > 0;
  const auto nodes = is_placed ? static_cast<std::uint64_t>(job.nodes_size()) : job.nodes_wanted();
  const auto sharing = sharing_text(job.tasks_per_core(), job.cpus_per_task());
  return fmt::format("{}{}{}{}", job.tasks(),
                     nodes == 0 ? "" : fmt::format(" on {}", counted(nodes, "node")),
                     sharing.empty() ? "" : "; ", sharing);
}

std::string state_line(const JobStatus& job) {
  std::string state(state_word(job.state()));
  if (is_final_state(job.state())) state += end_text(job.exit_code(), job.signal());
  if (job.activity() != wire::JobStatus::BUSY) {
    state += fmt::format(", {}{}", activity_word(job),
                         job.background() ? "; other jobs have its slices" : "");
  }
  return state;
}

// Returns how much of its memory was written to swap and read back; empty if none was.
std::string paging_text(const JobStatus& job) {
  if (job.residence() == 0 && job.paged_out_bytes() == 0) return {};
  return fmt::format("{}; {} written to swap, {} read back in {:.1f} s", proto::residence_word(job),
                     human_bytes(Bytes(job.paged_out_bytes())),
                     human_bytes(Bytes(job.paged_in_bytes())), to_seconds(job.paging_ns()));
}

// Returns "SIGUSR1 to the script, 0:01:00 before the limit"; empty if none was requested.
std::string limit_signal_text(const JobStatus& job) {
  if (job.limit_signal() == 0) return {};
  return fmt::format("{}{}, {} before the limit", signal_word(job.limit_signal()),
                     job.limit_signal_script() ? " to the script" : "",
                     short_time(job.limit_signal_before_ns()));
}

// Returns what the job demands besides cores, memory and time; some texts are empty.
std::array<std::pair<std::string_view, std::string>, 6> demand_lines(const JobStatus& job) {
  return {{{"partition", job.partition()},
           {"constraint", constraint_text(job)},
           {"gres", generic_text(job)},
           {"licenses", license_text(job)},
           {"scratch", scratch_text(job)},
           {"reservation", job.reservation()}}};
}

std::string job_page(const JobStatus& job) {
  std::string page;
  const auto line = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) page += fmt::format("{:>11}  {}\n", label, escape_terminal(text, 65536));
  };
  line("job", fmt::format("{} ({})", job_id(job), job.name()));
  if (job.has_array()) {
    const auto& array = job.array();
    line("array",
         fmt::format("{} wait{}{}, {} run, {} completed, {} did not",
                     counted(array.waiting_count(), "task"), array.waiting().empty() ? "" : ": ",
                     array.waiting(), array.running_count(), array.completed_count(),
                     array.failed_count()));
  } else if (job.array_job() != 0) {
    line("array", fmt::format("task {} of array {}", job.array_task(), job.array_job()));
  }
  line("user", job.user_name());
  line("account", job.account());
  for (const auto& [label, text] : demand_lines(job)) line(label, text);
  line("command", job.command());
  line("directory", job.directory());
  line("state", state_line(job));
  for (const auto& reason : job.reasons()) line("reason", reason);
  if (job.expected_start_wall_ns() > 0) {
    line("expected", "start " + local_time(job.expected_start_wall_ns()));
  }
  for (const auto& wait : job.waits()) line("waits", wait);
  if (job.restarts() > 0) line("restarts", std::to_string(job.restarts()));
  line("tasks", tasks_text(job));
  line("nodes", node_list(job));
  if (job.slot() >= 0 && !is_final_state(job.state())) {
    line("slot", fmt::format("{} (runs in {} rows), share {:.1f}%, weight {}", job.slot(),
                             job.rows_used(), job.share() * 100, job.weight()));
  }
  line("share", job.share_reason());
  line("queue", fmt::format("{}, priority {}", queue_word(job.queue()), job.priority()));
  line("scheduled", fmt::format("{:.1f} s in {} slices, limit {}", to_seconds(job.scheduled_ns()),
                                job.slices(), limit_time(job.scheduled_limit_ns())));
  if (job.no_fill()) line("fill", "refused (--no-fill)");
  line("memory", paging_text(job));
  const double filled_s = to_seconds(job.filled_ns());
  if (filled_s > 0) line("filled", fmt::format("{:.1f} s of processor time", filled_s));
  if (const auto usage = usage_in(job)) {
    for (const auto& used : usage_lines(*usage)) line("used", used);
  }
  line("elapsed", fmt::format("{:.1f} s, limit {}", to_seconds(job.elapsed_ns()),
                              limit_time(job.wall_limit_ns())));
  line("signal", limit_signal_text(job));
  line("submitted", local_time(job.submitted_wall_ns()));
  line("started", local_time(job.started_wall_ns()));
  line("ended", local_time(job.ended_wall_ns()));
  for (const auto& failed : failure_lines(job)) line("failed", failed);
  for (const auto& step : job.steps()) line("step", step_line(job.job(), step));
  return page;
}

}  // namespace score::scout
