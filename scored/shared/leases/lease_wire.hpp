#pragma once
// Converts wire::LeaseRequest and wire::LeaseReply to values and back. Messages of peers are
// checked: a head that is neither of the two, unknown bits, and terms beyond the limit are
// Malformed.

#include "base/result.hpp"
#include "gang/leadership/lease.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/heads.pb.h"

#include <optional>
#include <string>
#include <string_view>

namespace score::leases {

[[nodiscard]] wire::LeaseRequest to_wire(const gang::LeaseRequest& request);
[[nodiscard]] wire::LeaseReply to_wire(const gang::LeaseReply& reply);
[[nodiscard]] wire::LogPosition to_wire(gang::LogPosition position);

[[nodiscard]] Result<gang::LeaseRequest> read_request(const proto::InFrame& frame);
[[nodiscard]] Result<gang::LeaseReply> read_reply(const proto::InFrame& frame);
[[nodiscard]] Result<gang::LogPosition> from_wire(const wire::LogPosition& position);

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
