// Batches of PMI key/value pairs are part of FenceEnter and FenceDone. A batch is a sequence of
// entries, so two concatenated batches are a batch, and the head can collect a fence without
// parsing it. An entry is: u16 key length, u16 value length (little-endian), key, value.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

// The limit of a value, which is text. MPICH writes a byte as two digits, and leaves some room in a
// value.
inline constexpr std::size_t kMaxValueBytes = 2 * base::limits::kMaxPmiValueBytes + 8;

// The limits of a fence's result (a FenceDone carries 64 MiB), of a piece of it or of a node's
// key-values, and of key-values that a node sends at once with FenceEnter.
inline constexpr std::size_t kMaxFenceBytes = 64 * base::limits::kMiB - base::limits::kKiB;
inline constexpr std::size_t kMaxFencePieceBytes = 64 * base::limits::kKiB;
inline constexpr std::size_t kMaxFenceAtOnce = 16 * base::limits::kKiB;
static_assert(kMaxFenceAtOnce <= kMaxFencePieceBytes);

struct KeyValue {
  std::string_view key;
  std::string_view value;

  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

// Adds one entry. Errors: Malformed (empty key), TooLarge (limits::kMaxPmiKeyBytes,
// kMaxValueBytes). On an error the batch is unchanged.
base::Result<void> append_key_value(std::string& batch, std::string_view key,
                                    std::string_view value);

// Returns the entries in order, as views into `batch`. Errors: BadMessage (truncated, empty key,
// beyond a limit); the text names the byte.
base::Result<std::vector<KeyValue>> parse_key_values(std::string_view batch);

}  // namespace score::proto
