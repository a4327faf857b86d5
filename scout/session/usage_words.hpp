#pragma once
// Prints what a job has used.

#include "base/model/usage.hpp"
#include "base/text/json_writer.hpp"
#include "proto/common.pb.h"

#include <optional>
#include <string>
#include <vector>

namespace score::scout {

// Returns none if the head sent no usage, or not a valid one. `Message` is wire::JobStatus or
// wire::AccountingRow.
template <class Message>
[[nodiscard]] std::optional<base::Usage> usage_in(const Message& message);
[[nodiscard]] std::optional<base::Usage> read_usage(const wire::Usage& message);

template <class Message>
std::optional<base::Usage> usage_in(const Message& message) {
  return message.has_usage() ? read_usage(message.usage()) : std::nullopt;
}

// Returns the lines of a job's page: "0:00:03 of processor time (user 0:00:02, system 0:00:01)" ...
[[nodiscard]] std::vector<std::string> usage_lines(const base::Usage& usage);

// Returns "412M", as memory and data are shown in tables.
[[nodiscard]] std::string short_bytes(Bytes bytes);

}  // namespace score::scout
