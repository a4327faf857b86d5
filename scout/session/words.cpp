#include "scout/session/words.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/index_set.hpp"
#include "base/time.hpp"

#include <fmt/ranges.h>

#include <array>
#include <csignal>
#include <cstring>
#include <ctime>

namespace score::scout {

Tint state_tint(std::uint32_t job_state) {
  const auto word = state_word(job_state);
  if (word == "running") return Tint::Good;
  if (!is_final_state(job_state)) return Tint::Wait;
  return word == "completed" || word == "cancelled" ? Tint::Faint : Tint::Bad;
}

std::string signal_word(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

Result<JobWord> parse_job_word(std::string_view word) {
  const auto bad = [word] {
    return fail(Errc::Malformed,
                "'{}' is not a job id, a step such as 12.0, or tasks of an array such as 12_7 or "
                "12_[1-5]",
                escape_terminal(word, 80));
  };
  JobWord named;
  std::string_view rest = word;
  if (const auto dot = rest.find('.'); dot != rest.npos) {
    const auto step = parse_number<std::uint32_t>(rest.substr(dot + 1));
    if (!step) return bad();
    named.step = *step;
    rest = rest.substr(0, dot);
  }
  const auto underscore = rest.find('_');
  const auto job = parse_job(rest.substr(0, underscore));
  if (!job) return bad();
  named.job = *job;
  if (underscore == rest.npos) return named;
  std::string_view tasks = rest.substr(underscore + 1);
  const bool is_list = tasks.starts_with('[') && tasks.ends_with(']');
  if (is_list) tasks = tasks.substr(1, tasks.size() - 2);
  if (!is_list && !parse_number<std::uint32_t>(tasks)) return bad();
  if (!IndexSet::parse(tasks, 1'000'000)) return bad();
  named.tasks = std::string(tasks);
  return named;
}

Error about_job(const Error& error, std::uint64_t job) {
  const std::string name = fmt::format("job {}", job);
  const std::string& text = error.context();
  for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return error;
  }
  return error.with_context("{}", name);
}

std::string sharing_text(std::uint32_t tasks_per_core, std::uint32_t cpus_per_task) {
  if (tasks_per_core <= 1) return "";
  const auto cores =
      cpus_per_task <= 1 ? "each core" : fmt::format("every {} cores", cpus_per_task);
  return fmt::format("{} tasks share {}", tasks_per_core, cores);
}

std::string fill_words(const wire::Info& info) {
  const std::string value = setting_text(info, Setting::Fill);
  if (value != "on") return value;
  const auto queues = fmt::format("{}", fmt::join(info.fill_queues(), " "));
  return fmt::format("on, queues: {}", escape_terminal(queues.empty() ? "none" : queues, 80));
}

Result<NodeCountRange> parse_node_range(std::string_view word) {
  const auto dash = word.find('-');
  const bool is_range = dash != word.npos;
  const auto least = parse_number<std::uint32_t>(word.substr(0, dash));
  const auto most = is_range ? parse_number<std::uint32_t>(word.substr(dash + 1)) : least;
  const bool is_sound =
      least && most && *least > 0 && *least <= *most && *most <= limits::kMaxNodes;
  if (!is_sound) {
    return fail(Errc::Malformed,
                "'{}' is not a number of nodes from 1 to {} or a range such as 2-4",
                escape_terminal(word, 80), limits::kMaxNodes);
  }
  return NodeCountRange{*least, is_range ? *most : 0};
}

std::string short_time(std::int64_t ns) {
  return format_hms(Duration(ns));
}

std::string limit_time(std::int64_t ns) {
  return ns <= 0 ? "-" : format_duration(Duration(ns));
}

std::string local_time(std::int64_t wall_ns) {
  if (wall_ns <= 0) return "-";
  const auto seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
  tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "-";
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %T", &parts)};
}

std::string expected_start_text(std::int64_t wall_ns) {
  return "expected start: " + (wall_ns > 0 ? local_time(wall_ns) : std::string("unknown"));
}

Result<std::int64_t> parse_past(std::string_view word, std::int64_t now_ns) {
  const std::string text(word);
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    parts.tm_isdst = -1;
    const char* end = strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const int day = parts.tm_mday;
    const std::time_t seconds = std::mktime(&parts);
    if (parts.tm_mday != day) break;  // a day that the month does not have
    return Duration(std::chrono::seconds(seconds)).count();
  }
  const auto back = parse_duration(word);
  if (back) return now_ns - back->count();
  return fail(Errc::Malformed,
              "'{}' is not a time; use 2h or 7d for the time before now, or a date such as "
              "2026-11-21 or 2026-11-21T08:30",
              escape_terminal(word, 80));
}

}  // namespace score::scout
