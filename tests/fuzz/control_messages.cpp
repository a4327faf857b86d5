// Datagrams between daemons, and the messages about their network. Input: a choice, then bytes: a
// datagram, a roster, or an offer.
#include "base/assert.hpp"
#include "proto/control.pb.h"
#include "proto/frames/parse.hpp"
#include "scored/control/control_message.hpp"
#include "scored/control/roster.hpp"
#include "scored/node/meeting/meeting_channel.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

using namespace score::control;  // NOLINT(google-build-using-namespace)
namespace wire = score::wire;
namespace proto = score::proto;

void datagram(std::span<const std::byte> bytes, std::uint32_t source) {
  Message message;
  if (read_message(bytes, source, message) != MessageFault::None) return;
  SCORE_ASSERT(is_control(message.type) && message.payload.size() <= kMostMessageBytes);
  wire::ControlPing ping;
  wire::ControlPong pong;
  if (message.type == proto::FrameType::ControlPing) proto::parse_into(ping, message.payload);
  if (message.type == proto::FrameType::ControlPong) proto::parse_into(pong, message.payload);
}

void meeting(std::span<const std::byte> bytes) {
  const auto word = score::node::decode(bytes);
  if (!word) return;
  const auto again = score::node::encode(*word);
  SCORE_ASSERT(score::node::decode(std::as_bytes(std::span(&again, 1))) == word);
}

template <class Wire>
void round_trip(std::string_view bytes) {
  const auto message = proto::parse<Wire>(bytes, "message");
  if (!message) return;
  const auto value = from_wire(*message);
  if (!value) return;
  const auto again = from_wire(to_wire(*value));
  SCORE_ASSERT(again.has_value() && *again == *value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 4:
      meeting(std::as_bytes(std::span(bytes)));
      break;
    case 0:
      round_trip<wire::ControlRoster>(bytes);
      break;
    case 1:
      round_trip<wire::ControlOffer>(bytes);
      break;
    default:
      datagram(std::as_bytes(std::span(bytes)), data[0] % 5 - 2);
  }
  return 0;
}
