// This fuzz target parses datagrams between daemons, and the messages about their network. The
// input is a choice, then the bytes of a datagram, a roster, an offer, or keys.
#include "base/assert.hpp"
#include "proto/control.pb.h"
#include "proto/frames/parse.hpp"
#include "scored/control/control_message.hpp"
#include "scored/control/heartbeats.hpp"
#include "scored/control/roster.hpp"
#include "scored/control/timetables.hpp"
#include "scored/node/meeting/meeting_channel.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

using namespace score::control;  // NOLINT(google-build-using-namespace)
namespace wire = score::wire;
namespace proto = score::proto;

template <class Wire>
void parts_of(const Message& message) {
  const auto read = proto::parse<Wire>(message.payload, "message");
  if (read && message.type == proto::frame_type<Wire>()) (void)to_wire(from_wire(*read));
}

void datagram(std::span<const std::byte> bytes, std::uint32_t source) {
  Message message;
  (void)read_tag(bytes);
  if (read_message(bytes, source, message) != MessageFault::None) return;
  SCORE_ASSERT(is_control(message.type) && message.payload.size() <= kMostMessageBytes);
  parts_of<wire::ControlTimetables>(message);
  parts_of<wire::ControlTimetablesTaken>(message);
  wire::ControlBeat beat;
  wire::ControlAnswer answer;
  if (message.type == proto::FrameType::ControlAnswer) proto::parse_into(answer, message.payload);
  if (message.type != proto::FrameType::ControlBeat || !proto::parse_into(beat, message.payload))
    return;
  const auto summary = from_wire(beat);
  wire::ControlBeat again;
  to_wire(summary, again);
  SCORE_ASSERT(again.ByteSizeLong() <= kMostMessageBytes);
}

void meeting(std::span<const std::byte> bytes) {
  const auto word = score::node::decode(bytes);
  if (!word) return;
  const auto again = score::node::encode(*word);
  SCORE_ASSERT(score::node::decode(std::as_bytes(std::span(&again, 1))) == word);
}

void keys(std::string_view bytes) {
  const auto message = proto::parse<wire::ControlKeys>(bytes, "keys");
  if (!message) return;
  const auto keys = from_wire(*message);
  if (!keys) return;
  const auto again = keys->to_wire(message->generation());
  SCORE_ASSERT(from_wire(again).has_value());
  for (const std::uint32_t rank : message->ranks()) SCORE_ASSERT(keys->has(rank));
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
  switch (data[0] % 6) {
    case 5:
      keys(bytes);
      break;
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
      datagram(std::as_bytes(std::span(bytes)), data[0] % 6 - 2);
  }
  return 0;
}
