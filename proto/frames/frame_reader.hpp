// Bytes in, frames out: the incremental parser of the frame stream. Pure; the connections, the
// shepherd's poll loop and the fuzzers use it alike.
//
//   reader.feed(bytes);
//   for (;;) {
//     auto frame = reader.next(Role::NodeDaemon);
//     if (!frame) return frame.error();   // log once, count, close
//     if (!*frame) break;                 // needs more bytes
//     handle(std::move(**frame));
//   }
#pragma once

#include "base/result.hpp"
#include "proto/frames/frames.hpp"
#include "proto/frames/wire.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace score::proto {

// A received frame. `payload` belongs to the caller.
struct InFrame {
  FrameType type{};
  std::string payload;
};

// Checks a header's type, sender and length against the table. Errors: UnknownType, NotAllowed,
// TooLong; the text names the frame.
base::Result<const FrameRule*> check_header(const FrameHeader& header, Role sender);

// Header and payload as one block. A payload beyond the type's limit is encoded all the same: the
// connections refuse to send it, and a reader refuses to take it.
std::string encode_frame_bytes(FrameType type, std::string_view payload);
void append_frame(std::string& out, FrameType type, std::string_view payload);

// Memory held is proportional to the received bytes, never to a length that a peer claims: a
// header is checked before anything is kept for its payload, and the payload grows as it arrives.
class FrameReader {
 public:
  // Takes more of the stream. Call next() until it wants more before feeding again, else what is
  // fed piles up. Ignored after an error.
  void feed(std::string_view bytes);

  // The next complete frame, or nothing yet. `sender` is the current role of the peer: a
  // connection's first frame is read as Anonymous, the later ones with what the hello proved.
  // An error is final: every later call gives it again.
  base::Result<std::optional<InFrame>> next(Role sender);

  // True between frames: a stream may end here and nowhere else.
  [[nodiscard]] bool is_between_frames() const { return !header_ && pending_.size() == taken_; }

  // Bytes of payload that the current frame still needs; 0: no header so far.
  [[nodiscard]] std::size_t missing_payload() const {
    return header_ ? header_->length - payload_.size() : 0;
  }

  // Bytes the current frame still needs (a header's at least); for sizing the next read.
  [[nodiscard]] std::size_t wanted_bytes() const;

 private:
  base::Result<void> take_header(Role sender);
  void grow_payload(std::string_view bytes);
  void drop_taken();

  std::string pending_;  // not looked at yet, from taken_ on
  std::size_t taken_ = 0;
  std::optional<FrameHeader> header_;  // of the frame whose payload is being gathered
  std::string payload_;
  std::optional<base::Error> error_;
};

}  // namespace score::proto
