// Batches of PMI key/value pairs as they ride on FenceEnter and FenceDone. A batch is entries one
// after the other, so two batches laid end to end are a batch: the head gathers a fence without
// looking inside. An entry: u16 key length, u16 value length (little-endian), key, value.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

// Of a value, which is text: MPICH writes a byte as two digits, and into one value only what leaves
// some room.
inline constexpr std::size_t kMaxValueBytes = 2 * base::limits::kMaxPmiValueBytes + 8;

struct KeyValue {
  std::string_view key;
  std::string_view value;

  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

// Adds one entry. Errors: Malformed (empty key), TooLarge (limits::kMaxPmiKeyBytes,
// kMaxValueBytes); the batch is then as it was.
base::Result<void> append_key_value(std::string& batch, std::string_view key,
                                    std::string_view value);

// Adds a whole batch unread. Error: TooLarge (the sum would pass `max_bytes`).
base::Result<void> append_batch(std::string& all, std::string_view batch, std::size_t max_bytes);

// The entries, in order, as views into `batch`. Error: BadMessage (truncated, empty key, beyond a
// limit); the text says at which byte.
base::Result<std::vector<KeyValue>> parse_key_values(std::string_view batch);

}  // namespace score::proto
