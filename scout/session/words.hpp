// Converts states, signals, times and ids to the words that commands print, and back.
#pragma once

#include "base/model/model.hpp"
#include "base/model/settings.hpp"
#include "base/result.hpp"
#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"
#include "scout/session/text_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace score::scout {

std::string_view state_word(std::uint32_t job_state);  // "running"; "unknown" for an unknown state
bool is_final_state(std::uint32_t job_state);
Tint state_tint(std::uint32_t job_state);
std::string_view queue_word(std::uint32_t queue);  // "normal"
Result<base::Queue> parse_queue(std::string_view word);

// Accepts "TERM", "SIGTERM" or "15". Errors: NotFound.
Result<int> parse_signal(std::string_view word);
std::string signal_word(int signal);  // "SIGTERM", "signal 77"

// Parses a job id such as "7". Errors: Malformed, which quotes the word.
Result<std::uint64_t> parse_job(std::string_view word);

// Names a job, a step of it, or tasks of an array: "12", "12.0", "12_7", "12_[1-5,9]"; "12_7.0" is
// a step of a task. Errors: Malformed, which quotes the word.
struct JobWord {
  std::uint64_t job = 0;
  std::string tasks{};  // "7", "1-5,9"; empty: no tasks are named
  std::optional<std::uint32_t> step{};
};

Result<JobWord> parse_job_word(std::string_view word);

// Puts "job N" before the error, unless its text names that job already.
Error about_job(const Error& error, std::uint64_t job);

struct NodeCountRange {
  std::uint32_t least = 0;
  std::uint32_t most = 0;  // 0: exactly `least`
};

// Returns "16 tasks share each core"; empty if each task has its own core, or the placement is not
// known.
std::string sharing_text(std::uint32_t tasks_per_core, std::uint32_t cpus_per_task);

// Returns the fill policy in force: "off", or "on, queues: high normal".
std::string fill_words(const wire::Info& info);
// Returns the value in force, as text; "" if the head's release does not know the setting.
std::string setting_text(const wire::Info& info, Setting setting);

// Parses a number of nodes: "4", or "2-4". Errors: Malformed, which quotes the word.
Result<NodeCountRange> parse_node_range(std::string_view word);

// They print whole seconds as "0:01:07"; limit_time() prints "-" for 0, because 0 means no limit.
std::string short_time(std::int64_t ns);
std::string limit_time(std::int64_t ns);
// Formats a local time as "2026-11-21 05:41:49"; "-" for 0.
std::string local_time(std::int64_t wall_ns);
// Returns the line of a waiting job: "expected start: 2026-12-01 08:30:00", or "expected start:
// unknown" for 0.
std::string expected_start_text(std::int64_t wall_ns);
// Parses a time in the past as nanoseconds of wall time. "2h" and "7d" count back from now;
// "2026-11-21", "2026-11-21 08:30" and "2026-11-21T08:30:59" are local times. Errors: Malformed,
// which quotes the word.
Result<std::int64_t> parse_past(std::string_view word, std::int64_t now_ns);
double to_seconds(std::int64_t ns);
// Writes seconds since 1970 with milliseconds; 0 for a moment that is not known.
void write_moment(JsonWriter& json, std::string_view name, std::int64_t wall_ns);

}  // namespace score::scout
