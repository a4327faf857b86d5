// Tests the messages between the two heads and the nodes as their witnesses: input is a frame type
// (two bytes, little-endian) and its payload. An accepted message must survive encoding and
// decoding. Other input is a line that a witness stores.
#include "base/assert.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

namespace leases = score::leases;
namespace proto = score::proto;
using proto::FrameType;

template <class Message>
void round_trip(const proto::InFrame& frame) {
  if (frame.type != proto::frame_type<Message>()) return;
  const auto value = leases::read<Message>(frame);
  if (!value) return;
  const auto bytes = proto::to_wire(*value).SerializeAsString();
  const auto again = leases::read<Message>({frame.type, bytes});
  SCORE_ASSERT(again.has_value(), "a lease does not survive the wire");
  SCORE_ASSERT(proto::to_wire(*again).SerializeAsString() == bytes, "it has changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto grant = leases::parse_grant(text)) {
    const auto again = leases::parse_grant(leases::format_grant(*grant));
    SCORE_ASSERT(again && *again == *grant, "a grant does not survive its file");
  }
  const proto::InFrame frame{FrameType{static_cast<std::uint16_t>(data[0] | data[1] << 8U)},
                             std::string(text.substr(2))};
  round_trip<score::wire::LeaseRequest>(frame);
  round_trip<score::wire::LeaseReply>(frame);
  return 0;
}
