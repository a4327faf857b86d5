#pragma once
// Converts wire::LeaseRequest and wire::LeaseReply to values and back. Messages of peers are
// checked: a head that is neither of the two, unknown bits, and terms beyond the limit are
// rejected.

#include "base/result.hpp"
#include "gang/leadership/lease.hpp"
#include "proto/frames/field_check.hpp"
#include "proto/frames/parse.hpp"
#include "proto/heads.pb.h"
#include "proto/leases_values.inc"  // IWYU pragma: export

#include <optional>
#include <string>
#include <string_view>

namespace score::leases {

inline constexpr std::uint64_t kMostCount = (std::uint64_t{1} << 60U) - 1;
inline constexpr std::uint32_t kAllHeads = (1U << gang::kHeads) - 1;

// Returns the value of a wire::LeaseRequest or wire::LeaseReply. Errors: BadMessage.
template <class Message>
[[nodiscard]] auto read(const proto::InFrame& frame) -> decltype(proto::from_wire(Message())) {
  const auto message = proto::parse<Message>(frame);
  if (!message) return message.error();
  return proto::from_wire(*message);
}

// Holds what a witness stores over a restart of its daemon, as one line of text. parse_grant()
// fails with Malformed for any other text.
struct StoredGrant {
  Epoch term;
  std::optional<gang::HeadIndex> holder;
  gang::LogMark mark;

  friend bool operator==(const StoredGrant&, const StoredGrant&) = default;
};

[[nodiscard]] std::string format_grant(const StoredGrant& grant);
[[nodiscard]] Result<StoredGrant> parse_grant(std::string_view text);

}  // namespace score::leases
