#include "scout/slurm/words/account_fields.hpp"

#include "base/model/model.hpp"
#include "base/text.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/words/format.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace score::scout::slurm {

namespace {

using Line = AccountLine;
using base::JobState;

bool is_whole(const Line& line) {
  return line.step == nullptr && !line.is_script;
}

std::string suffix_of(const Line& line) {
  if (line.is_script) return ".batch";
  return line.step != nullptr ? fmt::format(".{}", line.step->step()) : std::string();
}

std::string id(const Line& line) {
  return id_words(*line.job) + suffix_of(line);
}

std::string raw_id(const Line& line) {
  return std::to_string(line.job->job()) + suffix_of(line);
}

std::string name(const Line& line) {
  if (line.is_script) return "batch";
  return line.step != nullptr ? line.step->name() : line.job->name();
}

std::uint32_t state_number(const Line& line) {
  return line.step != nullptr ? line.step->state() : line.job->state();
}

std::string state(const Line& line) {
  if (is_whole(line)) return record_state(*line.job);
  const auto how = static_cast<JobState>(state_number(line));
  if (how == JobState::Launching) return "PENDING";
  if (how == JobState::Completing) return "RUNNING";
  return std::string(state_words(state_number(line)).full);
}

std::string exit_code(const Line& line) {
  if (line.step != nullptr) {
    return exit_words(line.step->state(), line.step->exit_code(), line.step->signal());
  }
  return exit_words(line.job->state(), line.job->exit_code(), line.job->signal());
}

std::string derived_exit_code(const Line& line) {
  if (!is_whole(line)) return "";
  std::int32_t most = 0;
  std::int32_t signal = 0;
  for (const auto& step : line.job->steps()) {
    if (step.exit_code() <= most) continue;
    most = step.exit_code();
    signal = step.signal();
  }
  return signal != 0 ? fmt::format("0:{}", signal) : fmt::format("{}:0", most);
}

std::int64_t elapsed_ns(const Line& line) {
  return line.step != nullptr ? line.step->elapsed_ns() : line.job->elapsed_ns();
}

std::string elapsed(const Line& line) {
  return record_time(elapsed_ns(line));
}

std::string elapsed_seconds(const Line& line) {
  return std::to_string(elapsed_ns(line) / 1'000'000'000);
}

std::string cores(const Line& line) {
  if (line.step != nullptr) {
    return std::to_string(line.step->tasks() * std::max(1U, line.job->cpus_per_task()));
  }
  return std::to_string(core_count(*line.job));
}

std::string allocated_cores(const Line& line) {
  return line.job->nodes_size() == 0 && line.job->started_wall_ns() == 0 ? "0" : cores(line);
}

std::string nodes(const Line& line) {
  const std::string list = node_list(*line.job);
  return list.empty() ? "None assigned" : list;
}

std::string node_number(const Line& line) {
  if (line.is_script) return "1";
  return std::to_string(line.step != nullptr ? line.step->nodes() : node_count(*line.job));
}

std::string allocated_nodes(const Line& line) {
  return line.job->nodes_size() == 0 ? "0" : node_number(line);
}

std::string tasks(const Line& line) {
  if (is_whole(line)) return "";
  return line.is_script ? "1" : std::to_string(line.step->tasks());
}

std::string whole_only(const Line& line, std::string text) {
  return is_whole(line) ? std::move(text) : std::string();
}

std::string partition(const Line& line) {
  return whole_only(line, std::string(queue_word(line.job->queue())));
}

std::string account(const Line& line) {
  return line.job->account();
}

std::string user(const Line& line) {
  return whole_only(line, line.job->user_name());
}

std::string user_number(const Line& line) {
  return whole_only(line, std::to_string(line.job->user()));
}

std::string submitted(const Line& line) {
  return moment(line.job->submitted_wall_ns(), "Unknown");
}

// The head keeps no times of steps: they are within those of their job.
std::string started(const Line& line) {
  return moment(line.job->started_wall_ns(), "Unknown");
}

std::string ended(const Line& line) {
  return moment(line.job->ended_wall_ns(), "Unknown");
}

std::string limit(const Line& line) {
  return whole_only(line, limit_words(*line.job, record_time));
}

std::string requested_memory(const Line& line) {
  return whole_only(line, line.job->memory_per_node_bytes() == 0 ? "" : memory_words(*line.job));
}

// The use of a job includes its steps, so it is printed for the script, where clients look for it.
std::optional<base::Usage> usage_of(const Line& line) {
  if (line.step != nullptr || is_whole(line)) return std::nullopt;
  return usage_in(*line.job);
}

std::string peak_memory(const Line& line) {
  const auto usage = usage_of(line);
  return usage ? fmt::format("{}K", usage->memory_peak.value() / 1024) : "";
}

std::string used_time(const Line& line, std::int64_t ns) {
  return usage_in(*line.job) ? record_time(ns) : "00:00:00";
}

std::string total_time(const Line& line) {
  const auto usage = usage_in(*line.job);
  return used_time(line, usage ? (usage->cpu_user + usage->cpu_system).count() : 0);
}

std::string user_time(const Line& line) {
  const auto usage = usage_in(*line.job);
  return used_time(line, usage ? usage->cpu_user.count() : 0);
}

std::string system_time(const Line& line) {
  const auto usage = usage_in(*line.job);
  return used_time(line, usage ? usage->cpu_system.count() : 0);
}

std::string core_time(const Line& line) {
  return record_time(elapsed_ns(line) * core_count(*line.job));
}

std::string core_seconds(const Line& line) {
  return std::to_string(elapsed_ns(line) / 1'000'000'000 * core_count(*line.job));
}

std::string resources(const Line& line) {
  return resource_words(*line.job);
}

std::string reason(const Line& line) {
  return whole_only(line, reason_word(*line.job));
}

std::string directory(const Line& line) {
  return whole_only(line, line.job->directory());
}

std::string command(const Line& line) {
  return whole_only(line, line.job->command());
}

std::string restarts(const Line& line) {
  return whole_only(line, std::to_string(line.job->restarts()));
}

std::string priority(const Line& line) {
  return whole_only(line, std::to_string(line.job->priority()));
}

std::string reservation(const Line& line) {
  return whole_only(line, line.job->reservation());
}

std::string nothing(const Line& /*line*/) {
  return "";
}

std::string fixed_normal(const Line& line) {
  return whole_only(line, "normal");
}

constexpr std::array kFields = {
    AccountField{"JobID", -12, id},
    AccountField{"JobIDRaw", -12, raw_id},
    AccountField{"JobName", 10, name},
    AccountField{"Partition", 10, partition},
    AccountField{"Account", 10, account},
    AccountField{"AllocCPUS", 10, allocated_cores},
    AccountField{"State", 10, state},
    AccountField{"ExitCode", 8, exit_code},
    AccountField{"AllocNodes", 10, allocated_nodes},
    AccountField{"AllocTRES", 10, resources},
    AccountField{"AveCPU", 10, nothing},
    AccountField{"AveRSS", 10, peak_memory},
    AccountField{"Cluster", 10, nothing},
    AccountField{"Comment", 14, nothing},
    AccountField{"CPUTime", 10, core_time},
    AccountField{"CPUTimeRAW", 10, core_seconds},
    AccountField{"DerivedExitCode", 15, derived_exit_code},
    AccountField{"Elapsed", 10, elapsed},
    AccountField{"ElapsedRaw", 10, elapsed_seconds},
    AccountField{"Eligible", 19, submitted},
    AccountField{"End", 19, ended},
    AccountField{"Group", 9, nothing},
    AccountField{"MaxRSS", 10, peak_memory},
    AccountField{"MaxVMSize", 10, nothing},
    AccountField{"NCPUS", 10, cores},
    AccountField{"NNodes", 8, node_number},
    AccountField{"NodeList", 15, nodes},
    AccountField{"NTasks", 8, tasks},
    AccountField{"Priority", 10, priority},
    AccountField{"QOS", 10, fixed_normal},
    AccountField{"Reason", 22, reason},
    AccountField{"ReqCPUS", 8, cores},
    AccountField{"ReqMem", 10, requested_memory},
    AccountField{"ReqNodes", 8, node_number},
    AccountField{"ReqTRES", 10, resources},
    AccountField{"Reservation", 20, reservation},
    AccountField{"Restarts", 8, restarts},
    AccountField{"Start", 19, started},
    AccountField{"Submit", 19, submitted},
    AccountField{"SubmitLine", 20, command},
    AccountField{"SystemCPU", 10, system_time},
    AccountField{"Timelimit", 10, limit},
    AccountField{"TotalCPU", 10, total_time},
    AccountField{"TRESUsageInMax", 14, nothing},
    AccountField{"UID", 6, user_number},
    AccountField{"User", 9, user},
    AccountField{"UserCPU", 10, user_time},
    AccountField{"WCKey", 10, nothing},
    AccountField{"WorkDir", 20, directory},
};

constexpr int kMostWidth = 10'000;

std::string cell_text(std::string text, int width) {
  const auto wide = static_cast<std::size_t>(std::abs(width));
  if (wide == 0) return text;
  if (text.size() > wide) {
    text.resize(wide - 1);
    return text + "+";
  }
  const std::string space(wide - text.size(), ' ');
  return width < 0 ? text + space : space + text;
}

}  // namespace

std::vector<AccountLine> lines_of(const wire::JobStatus& job, bool with_steps) {
  std::vector<AccountLine> lines = {{&job, nullptr, false}};
  if (!with_steps) return lines;
  if (job.allocation() && job.started_wall_ns() > 0) lines.push_back({&job, nullptr, true});
  for (const auto& step : job.steps()) lines.push_back({&job, &step, false});
  return lines;
}

Result<std::vector<AccountColumn>> read_account_columns(std::string_view list) {
  std::vector<AccountColumn> columns;
  for (const auto part : split(list, ',')) {
    const auto item = trim(part);
    if (item.empty()) continue;
    const auto percent = item.find('%');
    const auto wanted = item.substr(0, percent);
    const auto is_it = [&](const AccountField& field) { return equal_names(field.name, wanted); };
    const auto found = std::ranges::find_if(kFields, is_it);
    if (found == kFields.end()) {
      return fail(Errc::NotFound, "Invalid field requested: \"{}\" (--helpformat lists the fields)",
                  escape_terminal(wanted, 80));
    }
    int width = found->width;
    if (percent != item.npos) {
      const auto number = parse_number<int>(item.substr(percent + 1));
      if (!number || *number == 0 || std::abs(*number) > kMostWidth) {
        return fail(Errc::Malformed, "'{}': expected a width after '%'", escape_terminal(item, 80));
      }
      // A width without a sign keeps the alignment of the field.
      width = *number > 0 && width < 0 ? -*number : *number;
    }
    columns.push_back({&*found, width});
  }
  if (columns.empty()) return fail(Errc::Malformed, "--format: no field is given");
  return columns;
}

std::string account_field_names() {
  std::string text;
  std::size_t column = 0;
  for (const auto& field : kFields) {
    text += fmt::format("{:<19}", field.name);
    if (++column % 4 == 0) text += "\n";
  }
  return text + "\n";
}

std::string account_heading(const std::vector<AccountColumn>& columns, AccountStyle style,
                            std::string_view delimiter) {
  std::string names;
  std::string rule;
  for (const auto& [field, width] : columns) {
    if (style == AccountStyle::Table) {
      names += cell_text(std::string(field->name), width) + " ";
      rule += std::string(static_cast<std::size_t>(std::abs(width)), '-') + " ";
    } else {
      if (!names.empty()) names += delimiter;
      names += field->name;
    }
  }
  if (style == AccountStyle::BarsAtEnd) names += delimiter;
  return names + "\n" + (rule.empty() ? "" : rule + "\n");
}

std::string account_text(const std::vector<AccountColumn>& columns, const AccountLine& line,
                         AccountStyle style, std::string_view delimiter) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string cell = escape_terminal(columns[i].field->cell(line), 65'536);
    if (style == AccountStyle::Table) {
      text += cell_text(cell, columns[i].width) + " ";
    } else {
      if (i > 0) text += delimiter;
      text += cell;
    }
  }
  if (style == AccountStyle::BarsAtEnd) text += delimiter;
  return text + "\n";
}

}  // namespace score::scout::slurm
