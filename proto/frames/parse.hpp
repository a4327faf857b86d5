// Parses bytes into a message, within limits. The fields are checked afterwards (convert.hpp).
#pragma once

#include "base/result.hpp"
#include "proto/frames/errc.hpp"
#include "proto/frames/frame_reader.hpp"

#include <string_view>

namespace google::protobuf {
class MessageLite;
}

namespace score::proto {

// Fills `message`. Nesting is limited to limits::kMaxMessageDepth. Returns false if the bytes are
// not such a message.
bool parse_into(google::protobuf::MessageLite& message, std::string_view bytes);

template <class Message>
base::Result<Message> parse(std::string_view bytes, std::string_view name) {
  Message message;
  if (!parse_into(message, bytes)) return base::fail(WireErrc::BadMessage, "broken {}", name);
  return message;
}

// Returns the message that a frame carries. Errors: BadMessage, including for a frame of a
// different type.
template <class Message>
base::Result<Message> parse(const InFrame& frame) {
  constexpr FrameType kType = frame_type<Message>();
  if (frame.type != kType) {
    return base::fail(WireErrc::BadMessage, "{} where {} is due", name_of(frame.type),
                      name_of(kType));
  }
  return parse<Message>(frame.payload, name_of(kType));
}

}  // namespace score::proto
