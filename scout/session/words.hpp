// Converts states, signals, times and ids to the words that commands print, and back.
#pragma once

#include "base/model/model.hpp"
#include "base/model/settings.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/documents/cluster_documents.hpp"
#include "proto/documents/words.hpp"
#include "scout/session/text_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace score::scout {

using proto::is_final_state;
using proto::parse_job;
using proto::parse_queue;
using proto::parse_signal;
using proto::queue_word;
using proto::state_word;
using proto::to_seconds;
using proto::write_moment;

Tint state_tint(std::uint32_t job_state);
std::string signal_word(int signal);  // "SIGTERM", "signal 77"

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
using proto::setting_text;

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

}  // namespace score::scout
