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

template <class Value, class Read>
void round_trip(const Value& value, Read read) {
  const auto message = leases::to_wire(value);
  const proto::InFrame frame{proto::frame_type<std::remove_cvref_t<decltype(message)>>(),
                             message.SerializeAsString()};
  const auto again = read(frame);
  SCORE_ASSERT(again.has_value(), "a lease does not survive the wire");
  SCORE_ASSERT(leases::to_wire(*again).SerializeAsString() == frame.payload, "it has changed");
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
  if (frame.type == FrameType::LeaseRequest) {
    if (const auto request = leases::read_request(frame)) {
      round_trip(*request, &leases::read_request);
    }
  }
  if (frame.type == FrameType::LeaseReply) {
    if (const auto reply = leases::read_reply(frame)) round_trip(*reply, &leases::read_reply);
  }
  return 0;
}
