// FrameReader is the incremental parser of the frame stream: bytes in, frames out. It is pure. The
// connections, the shepherd's poll loop and the fuzzers use it.
//
//    reader.feed(bytes);
//    for (;;) {
//      auto frame = reader.next(Role::NodeDaemon);
//      if (!frame) return frame.error();   // log once, count, close
//      if (!*frame) break;                 // needs more bytes
//      handle(std::move(**frame));
//    }
#pragma once

#include "base/result.hpp"
#include "proto/frames/frames.hpp"
#include "proto/frames/wire.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace score::proto {

// InFrame is a received frame. The caller owns `payload`.
struct InFrame {
  FrameType type{};
  std::string payload;
};

// Checks a header's type, sender and length against the table. Errors: UnknownType, NotAllowed,
// TooLong; the text names the frame.
base::Result<const FrameRule*> check_header(const FrameHeader& header, Role sender);

// Encodes header and payload as one block. A payload beyond the type's limit is encoded too: the
// connections do not send it, and a reader rejects it.
std::string encode_frame_bytes(FrameType type, std::string_view payload);
void append_frame(std::string& out, FrameType type, std::string_view payload);

// The memory in use is proportional to the received bytes, never to a length that a peer claims. A
// header is checked before any memory is reserved for its payload, and the payload grows as it
// arrives.
class FrameReader {
 public:
  // Adds bytes of the stream. Call next() until it needs more before feeding again, otherwise the
  // bytes accumulate. It does nothing after an error.
  void feed(std::string_view bytes);

  // Returns the next complete frame, or nothing yet. `sender` is the current role of the peer: the
  // first frame of a connection is read as Anonymous, later ones with the role that the hello
  // proved. An error is final: every later call returns it again.
  base::Result<std::optional<InFrame>> next(Role sender);

  // Returns true between frames. A stream may end only there.
  [[nodiscard]] bool is_between_frames() const { return !header_ && pending_.size() == taken_; }

  // Returns how many bytes of payload the current frame still needs; it is 0 before the header is
  // complete.
  [[nodiscard]] std::size_t missing_payload() const {
    return header_ ? header_->length - payload_.size() : 0;
  }

  // Returns the bytes that the current frame still needs (at least those of a header), for sizing
  // the next read.
  [[nodiscard]] std::size_t wanted_bytes() const;

 private:
  base::Result<void> take_header(Role sender);
  void grow_payload(std::string_view bytes);
  void drop_taken();

  std::string pending_;  // not parsed yet, from taken_ on
  std::size_t taken_ = 0;
  std::optional<FrameHeader> header_;  // of the frame whose payload is arriving
  std::string payload_;
  std::optional<base::Error> error_;
};

}  // namespace score::proto
