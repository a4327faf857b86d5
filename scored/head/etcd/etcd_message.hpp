#pragma once
// Writes the requests to etcd's JSON gateway (API v3, etcd 3.4) that a lease needs, and checks the
// answers: they read one key, or replace its value if it is unchanged. They do no I/O.

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace score::head::etcd {

inline constexpr std::string_view kReadPath = "/v3/kv/range";
inline constexpr std::string_view kReplacePath = "/v3/kv/txn";
inline constexpr std::size_t kMaxAnswerBytes = 16 * 1024;

// KeyState is a key as a quorum of the members has it.
struct KeyState {
  std::uint64_t revision = 0;  // of its last change; 0: the key does not exist
  std::string value;

  friend bool operator==(const KeyState&, const KeyState&) = default;
};

struct Answer {
  std::uint64_t cluster = 0;               // id of the etcd cluster
  std::optional<std::uint64_t> stored_at;  // revision of the new value, if it was stored
  KeyState found;                          // otherwise: the key
};

[[nodiscard]] std::string format_read(std::string_view key);
// `revision` is that of the value which the caller knows.
[[nodiscard]] std::string format_replace(std::string_view key, std::uint64_t revision,
                                         std::string_view value);

// These check the body of an answer with status 200. Errors: Malformed.
[[nodiscard]] Result<Answer> parse_read(std::string_view body, std::string_view key);
[[nodiscard]] Result<Answer> parse_replaced(std::string_view body, std::string_view key);

// Returns why etcd has refused a request, as printable text from an answer with another status.
[[nodiscard]] std::string describe_refusal(unsigned status, std::string_view body);

[[nodiscard]] std::string encode_base64(std::string_view bytes);
// Errors: Malformed, also for text that encode_base64() does not make.
[[nodiscard]] Result<std::string> decode_base64(std::string_view text);

}  // namespace score::head::etcd
