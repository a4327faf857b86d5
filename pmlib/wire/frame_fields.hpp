// What the fields of a frame mean for each kind. A view names them and costs nothing; it is made
// over a FrameHeader or RmaHeader, const or not, whose kind the caller has looked at.
// docs/reference/pm.md has the same table, and check_frames.py compares the two.
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

// Every frame of a channel, in sequence or not.
template <class Header>
class ChannelFrame : public FieldView<Header> {
 public:
  explicit constexpr ChannelFrame(Header& header) : FieldView<Header>(header) {}

  // The last number that the sender of this frame has stored.
  constexpr auto& stored() const { return this->h.word; }
};

// Message, Large, OpDone, Write, ReadRequest, Void.
template <class Header>
class SequencedFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr SequencedFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& sequence() const { return this->h.number; }
};

// Everything up to acknowledged() is stored.
template <class Header>
class AckFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr AckFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& acknowledged() const { return this->h.number; }
};

// acknowledged() is stored, the next number is missing.
template <class Header>
class LoseFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr LoseFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& acknowledged() const { return this->h.number; }

  constexpr auto& bit_count() const { return this->h.half1; }
};

// refused() found no buffer.
template <class Header>
class StopFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr StopFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& refused() const { return this->h.number; }

  // Orders STOP and GO among themselves.
  constexpr auto& flow_count() const { return this->h.half0; }
};

// Send again, from next() on.
template <class Header>
class GoFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr GoFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& next() const { return this->h.number; }

  constexpr auto& flow_count() const { return this->h.half0; }

  constexpr auto& free_buffers() const { return this->h.half1; }
};

// denied() was not stored.
template <class Header>
class DenyFrame : public ChannelFrame<Header> {
 public:
  explicit constexpr DenyFrame(Header& header) : ChannelFrame<Header>(header) {}

  constexpr auto& denied() const { return this->h.number; }

  // 1: a read that cannot be answered yet; ask again under a later number.
  constexpr auto& is_postponed() const { return this->h.half1; }
};

// Probe, ProbeAnswer.
template <class Header>
class ProbeFrame : public FieldView<Header> {
 public:
  explicit constexpr ProbeFrame(Header& header) : FieldView<Header>(header) {}

  constexpr auto& probe() const { return this->h.number; }
};

// One piece of a frame that is too long for the path.
template <class Header>
class PieceFrame : public FieldView<Header> {
 public:
  explicit constexpr PieceFrame(Header& header) : FieldView<Header>(header) {}

  constexpr auto& frame_number() const { return this->h.number; }

  constexpr auto& frame_bytes() const { return this->h.word; }

  constexpr auto& piece_index() const { return this->h.half0; }

  constexpr auto& piece_count() const { return this->h.half1; }
};

// The RmaHeader of a Write whose place is kMiddle.
template <class Header>
class WriteMiddle : public FieldView<Header> {
 public:
  explicit constexpr WriteMiddle(Header& header) : FieldView<Header>(header) {}

  // Frames of the same write that went before.
  constexpr auto& frames_before() const { return this->h.word; }
};

// The RmaHeader of a Write whose place is kEnd or kReplyEnd.
template <class Header>
class WriteEnd : public FieldView<Header> {
 public:
  explicit constexpr WriteEnd(Header& header) : FieldView<Header>(header) {}

  // The operation of the receiver that kReplyEnd completes; 0 = none.
  constexpr auto& operation() const { return this->h.word; }
};

// The RmaHeader of an OpDone.
template <class Header>
class OperationEnd : public FieldView<Header> {
 public:
  explicit constexpr OperationEnd(Header& header) : FieldView<Header>(header) {}

  constexpr auto& operation() const { return this->h.word; }

  constexpr auto& error() const { return this->h.nonce; }  // errno
};

}  // namespace score::pm
