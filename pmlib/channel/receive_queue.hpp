// ReceiveQueue keeps frames that arrived in sequence in the context's receive buffers: messages
// until the application releases them, and reads of other ranks until they are answered. It owns
// these buffers. It also owns the senders that were refused for lack of a buffer, and sends GO to
// each in turn.
#pragma once

#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace score::pm {

// A MessageConsumer is offered messages as they arrive, so that their bytes go directly to their
// destination without a receive buffer.
class MessageConsumer {
 public:
  // Offers the next message of `source`; the owner has received all before it. If it returns true,
  // the message was taken and receive() will not return it. It must not call the channel; `bytes`
  // are valid only during the call.
  virtual bool take(std::uint32_t source, std::span<const std::byte> bytes) = 0;

  // A Place is where take() would put the bytes of such a message from `skipped` on, in one piece.
  // It is null if take() would do more, or would not take the message. The bytes are not verified
  // yet: they may be overwritten, and nothing else changes before placed().
  struct Place {
    std::byte* to = nullptr;
    std::size_t skipped = 0;
  };

  virtual Place place(std::uint32_t source, std::span<const std::byte> bytes) = 0;
  // The channel calls this when the bytes are in place and verified.
  virtual void placed(std::uint32_t source, std::size_t count) = 0;

 protected:
  ~MessageConsumer() = default;
};

class ReceiveQueue {
 public:
  // Both arguments must outlive the object.
  ReceiveQueue(ChannelState& state, FrameSender& frames)
      : state_(state), frames_(frames), refused_(state.segment.set(PeerSetId::Refused)) {}

  // Returns the oldest message not received yet. The caller may hold several; each occupies a
  // buffer until it is released.
  bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);

  // --- what arrives

  static bool needs_buffer(FrameKind kind) {
    return kind == FrameKind::Message || kind == FrameKind::Large || kind == FrameKind::ReadRequest;
  }

  // Returns true if a frame of `kind` can be stored for `peer`.
  bool has_room(const PeerState& peer, FrameKind kind) const {
    return !needs_buffer(kind) || state_.header().room.has_room_for(peer.receive);
  }

  bool has_room_fast() const { return state_.header().room.unpromised() != 0; }

  // With null no messages are offered.
  void set_consumer(MessageConsumer* taker) { taker_ = taker; }

  bool has_taker() const { return taker_ != nullptr; }

  // Has the contract of MessageConsumer::place() for the next message of `source`.
  MessageConsumer::Place place(std::uint32_t source, std::span<const std::byte> payload) {
    if (taker_ == nullptr || state_.header().delivered.head != kNoIndex) return {};
    return taker_->place(source, payload);
  }

  void placed(std::uint32_t source, std::size_t length, std::size_t skipped) {
    Counters& c = state_.counters();
    ++c.messages_received;
    c.bytes_received += length;
    taker_->placed(source, length - skipped);
  }

  // Offers a frame that needs a buffer and has room. If it returns false, the caller must store the
  // frame.
  bool offer(const FrameHeader& h, std::span<const std::byte> payload);

  // Stores a frame that needs a buffer and has room.
  void store(const FrameHeader& h, std::span<const std::byte> payload);

  // Does the same for a Message in one piece from a sender without a reserved buffer.
  void store_fast(std::uint32_t source, std::span<const std::byte> frame) {
    SegmentHeader& s = state_.header();
    ++s.room.used;
    const std::uint16_t buffer =
        take_buffer(source, FrameKind::Message, frame.size() - sizeof(FrameHeader));
    append(s.delivered, buffer);
    std::memcpy(state_.segment.receive_buffer(buffer), frame.data(), frame.size());
  }

  // Stores a datagram in a buffer that is not reserved for a sender, or drops and counts it.
  void store_datagram(const FrameHeader& h, std::span<const std::byte> payload);

  // --- reads that other ranks have requested

  bool has_reads() const { return state_.header().requests.head != kNoIndex; }

  std::uint32_t reads() const;

  // Returns the oldest read; `bytes` is its payload.
  ReceivedMessage first_read() const;
  void pop_read();

  // --- senders without room

  void on_refused(std::uint32_t rank) { refused_.insert(rank); }

  // Drops `rank` from the refused senders because it is no longer refused, or is dead.
  void forget(std::uint32_t rank) { refused_.erase(rank); }

 private:
  // Takes a free buffer; the caller has checked SharedRoom, so there is one.
  std::uint16_t take_buffer(std::uint32_t source, FrameKind kind, std::size_t length) {
    SegmentHeader& s = state_.header();
    const std::uint16_t buffer = s.free_receive_buffer;
    ReceivedBuffer& r = state_.segment.received(buffer);
    s.free_receive_buffer = r.next;
    r.source = source;
    r.length = static_cast<std::uint16_t>(length);
    r.kind = kind;
    r.lent = 0;
    return buffer;
  }

  void append(FifoList& list, std::uint16_t buffer) {
    state_.segment.received(buffer).next = kNoIndex;
    if (list.tail == kNoIndex) [[likely]] {
      list.head = buffer;
    } else {
      state_.segment.received(list.tail).next = buffer;
    }
    list.tail = buffer;
  }

  std::uint16_t pop(FifoList& list);
  void free_buffer(std::uint16_t buffer);
  [[gnu::noinline]] void invite_refused();

  ChannelState& state_;
  FrameSender& frames_;
  PeerSet refused_;
  MessageConsumer* taker_ = nullptr;
};

}  // namespace score::pm
