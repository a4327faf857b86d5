// Converts values of messages to the words of texts and JSON documents, and back.
#pragma once

#include "base/model/model.hpp"
#include "base/model/usage.hpp"
#include "base/result.hpp"
#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace score::proto {

[[nodiscard]] std::string_view state_word(std::uint32_t job_state);  // "running", "unknown"
[[nodiscard]] bool is_final_state(std::uint32_t job_state);
[[nodiscard]] std::string_view queue_word(std::uint32_t queue);  // "normal"
// Errors: NotFound, which quotes the word.
[[nodiscard]] Result<base::Queue> parse_queue(std::string_view word);
// Parses a job id such as "7". Errors: Malformed, which quotes the word.
[[nodiscard]] Result<std::uint64_t> parse_job(std::string_view word);
// Adds the conditions of a list such as "afterok:12:13,singleton". Errors: Malformed; TooLarge (too
// many jobs).
[[nodiscard]] Status parse_after(std::string_view text, wire::JobConditions& conditions);
// Accepts "TERM", "SIGTERM" or "15". Errors: NotFound.
[[nodiscard]] Result<int> parse_signal(std::string_view word);

[[nodiscard]] double to_seconds(std::int64_t ns);
// Writes seconds since 1970 with milliseconds; 0 for a moment that is not known.
void write_moment(JsonWriter& json, std::string_view name, std::int64_t wall_ns);

// Returns none if the head sent no usage, or not a valid one. `Message` is wire::JobStatus or
// wire::AccountingRow.
template <class Message>
[[nodiscard]] std::optional<base::Usage> usage_in(const Message& message);
[[nodiscard]] std::optional<base::Usage> read_usage(const wire::Usage& message);

template <class Message>
std::optional<base::Usage> usage_in(const Message& message) {
  return message.has_usage() ? read_usage(message.usage()) : std::nullopt;
}

}  // namespace score::proto
