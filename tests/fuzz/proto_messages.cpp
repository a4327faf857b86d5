// This fuzz target runs every conversion from the wire. The input is a frame type (two bytes,
// little-endian) and its payload. An accepted message must stay unchanged when it is encoded and
// parsed again.

#include "base/assert.hpp"
#include "proto/convert/convert.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

namespace proto = score::proto;
namespace wire = score::wire;
using proto::FrameType;

void head_to_node(FrameType type, std::string_view payload) {
  const auto value = proto::decode_head_to_node(type, payload);
  if (!value) return;
  const auto frame = proto::encode(*value);
  const auto again = proto::decode_head_to_node(frame.type, frame.payload);
  SCORE_ASSERT(again.has_value(), "{}", proto::name_of(type));
  SCORE_ASSERT(proto::encode(*again).payload == frame.payload, "{}", proto::name_of(type));
}

void node_to_head(FrameType type, std::string_view payload) {
  const auto value = proto::decode_node_to_head(type, payload);
  if (!value) return;
  const auto frame = proto::encode(*value);
  const auto again = proto::decode_node_to_head(frame.type, frame.payload);
  SCORE_ASSERT(again.has_value(), "{}", proto::name_of(type));
  SCORE_ASSERT(proto::encode(*again).payload == frame.payload, "{}", proto::name_of(type));
}

template <class Message>
void round_trip(const Message& message) {
  const auto value = proto::from_wire(message);
  if (!value) return;
  const Message once = proto::to_wire(*value);
  const auto again = proto::from_wire(once);
  SCORE_ASSERT(again.has_value(), "{}", message.GetTypeName());
  SCORE_ASSERT(proto::to_wire(*again).SerializeAsString() == once.SerializeAsString(), "{}",
               message.GetTypeName());
}

void submit(std::string_view payload) {
  const auto message = proto::parse<wire::Submit>(payload, "Submit");
  if (!message) return;
  round_trip(message->resources());
  const auto id = proto::request_id_from_wire(message->request_id());
  SCORE_ASSERT(!id || proto::to_wire(*id) == message->request_id());
  static_cast<void>(proto::check_launch_spec(message->spec()).has_value());
}

template <class Message>
void of_shepherd(FrameType type, std::string_view payload) {
  if (type != proto::frame_type<Message>()) return;
  const auto message = proto::parse<Message>(payload, proto::name_of(type));
  if (message) round_trip(*message);
}

void failed(std::string_view payload) {
  const auto message = proto::parse<wire::Failed>(payload, "Failed");
  if (!message) return;
  const auto error = proto::from_wire(message->error());
  SCORE_ASSERT(error.code() && !error.message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const FrameType type{static_cast<std::uint16_t>(data[0] | data[1] << 8U)};
  const std::string_view payload(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (type == FrameType::Submit) submit(payload);
  if (type == FrameType::Failed) failed(payload);
  head_to_node(type, payload);
  node_to_head(type, payload);
  of_shepherd<wire::ShepherdReport>(type, payload);
  of_shepherd<wire::ShepherdPrepare>(type, payload);
  of_shepherd<wire::ShepherdStarted>(type, payload);
  return 0;
}
