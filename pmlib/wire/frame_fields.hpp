// These views name the fields of a frame for each kind, and cost nothing. A view is made over a
// FrameHeader or RmaHeader, const or not, whose kind the caller has checked. docs/reference/pm.md
// has the same table, and check_frames.py compares the two.
#pragma once

#include "pmlib/wire/frame.hpp"

#include <cstdint>

namespace score::pm {

template <class Header>
class FieldView {
 public:
  explicit constexpr FieldView(Header& header) : h(header) {}

 protected:
  Header& h;
};

// ChannelFrame views every frame of a channel, in sequence or not.
template <class Header>
class ChannelFrame : public FieldView<Header> {
 public:
  explicit constexpr ChannelFrame(Header& header) : FieldView<Header>(header) {}

  // Returns the last number that the sender of this frame has stored.
  constexpr auto& stored() const { return this->h.word; }
};

// SequencedFrame is the view of Message, Large, OpDone, Write, ReadRequest and Void.
template <class Header>
class SequencedFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr SequencedFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& sequence() const { return this->h.number; }
};

// The sender has stored everything up to acknowledged().
template <class Header>
class AckFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr AckFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& acknowledged() const { return this->h.number; }
};

// The sender has stored acknowledged(), but the next number is missing.
template <class Header>
class LoseFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr LoseFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& acknowledged() const { return this->h.number; }

  constexpr auto& bit_count() const { return this->h.half1; }
};

// There was no buffer for refused().
template <class Header>
class StopFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr StopFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& refused() const { return this->h.number; }

  // The count puts STOP and GO in order.
  constexpr auto& flow_count() const { return this->h.half0; }
};

// The receiver should send again, from next() on.
template <class Header>
class GoFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr GoFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& next() const { return this->h.number; }

  constexpr auto& flow_count() const { return this->h.half0; }

  constexpr auto& free_buffers() const { return this->h.half1; }
};

// The frame denied() was not stored.
template <class Header>
class DenyFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr DenyFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& denied() const { return this->h.number; }

  // The value is 1 for a read that cannot be answered yet; it must be requested again under a later
  // number.
  constexpr auto& is_postponed() const { return this->h.half1; }
};

// ProbeFrame views Probe and ProbeAnswer.
template <class Header>
class ProbeFrame : public FieldView<Header> {
 public:
  explicit constexpr ProbeFrame(Header& header) : FieldView<Header>(header) {}

  constexpr auto& probe() const { return this->h.number; }
};

// PieceFrame views one piece of a frame that is too long for the path.
template <class Header>
class PieceFrame : public FieldView<Header> {
 public:
  explicit constexpr PieceFrame(Header& header) : FieldView<Header>(header) {}

  constexpr auto& frame_number() const { return this->h.number; }

  constexpr auto& frame_bytes() const { return this->h.word; }

  constexpr auto& piece_index() const { return this->h.half0; }

  constexpr auto& piece_count() const { return this->h.half1; }
};

// WriteMiddle views the RmaHeader of a Write whose place is kMiddle.
template <class Header>
class WriteMiddle : public FieldView<Header> {
 public:
  explicit constexpr WriteMiddle(Header& header) : FieldView<Header>(header) {}

  // Returns the number of preceding frames of the same write.
  constexpr auto& frames_before() const { return this->h.word; }
};

// WriteEnd views the RmaHeader of a Write whose place is kEnd or kReplyEnd.
template <class Header>
class WriteEnd : public FieldView<Header> {
 public:
  explicit constexpr WriteEnd(Header& header) : FieldView<Header>(header) {}

  // Returns the operation of the receiver that kReplyEnd completes; 0 = none.
  constexpr auto& operation() const { return this->h.word; }
};

// OperationEnd views the RmaHeader of an OpDone.
template <class Header>
class OperationEnd : public FieldView<Header> {
 public:
  explicit constexpr OperationEnd(Header& header) : FieldView<Header>(header) {}

  constexpr auto& operation() const { return this->h.word; }

  constexpr auto& error() const { return this->h.nonce; }  // errno
};

}  // namespace score::pm
