// What has arrived in sequence and lies in the context's receive buffers: messages until the
// application releases them, reads of other ranks until they are answered. Owns these buffers and
// the senders that were refused for want of one: each is invited again in its turn.
#pragma once

#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace score::pm {

// Is offered messages as they arrive, so that their bytes go where they belong without lying in a
// receive buffer first.
class MessageTaker {
 public:
  // The next message of `source` has arrived, and the owner has received all before it. True: it
  // was taken, and receive() will not give it. Does not call the channel; `bytes` are valid during
  // the call.
  virtual bool take(std::uint32_t source, std::span<const std::byte> bytes) = 0;

  // Where take() would put bytes of such a message from `skipped` on, all in one piece. Null: it
  // would do more, or not take it. Nothing is believed yet: what lies there may be overwritten, and
  // nothing else changes before placed().
  struct Place {
    std::byte* to = nullptr;
    std::size_t skipped = 0;
  };

  virtual Place place(std::uint32_t source, std::span<const std::byte> bytes) = 0;
  // The bytes are there, and are what was sent.
  virtual void placed(std::uint32_t source, std::size_t count) = 0;

 protected:
  ~MessageTaker() = default;
};

class ReceiveQueue {
 public:
  // Both outlive the object.
  ReceiveQueue(ChannelState& state, FrameSender& frames)
      : state_(state), frames_(frames), refused_(state.segment.set(PeerSetId::Refused)) {}

  // The oldest message not received yet. Several may be held; each takes a buffer until released.
  bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);

  // --- what arrives

  static bool needs_buffer(FrameKind kind) {
    return kind == FrameKind::Message || kind == FrameKind::Large || kind == FrameKind::ReadRequest;
  }

  // Whether a frame of `kind` can be stored for `peer`.
  bool has_room(const PeerState& peer, FrameKind kind) const {
    return !needs_buffer(kind) || state_.header().room.has_room_for(peer.receive);
  }

  bool has_room_fast() const { return state_.header().room.unpromised() != 0; }

  // Null: no one is offered messages.
  void set_taker(MessageTaker* taker) { taker_ = taker; }

  bool has_taker() const { return taker_ != nullptr; }

  // See MessageTaker, for the next message of `source`.
  MessageTaker::Place place(std::uint32_t source, std::span<const std::byte> payload) {
    if (taker_ == nullptr || state_.header().delivered.head != kNoIndex) return {};
    return taker_->place(source, payload);
  }

  void placed(std::uint32_t source, std::size_t length, std::size_t skipped) {
    Counters& c = state_.counters();
    ++c.messages_received;
    c.bytes_received += length;
    taker_->placed(source, length - skipped);
  }

  // Offers a frame that needs a buffer and has room. False: it has to be stored.
  bool offer(const FrameHeader& h, std::span<const std::byte> payload);

  // Stores a frame that needs a buffer and has room.
  void store(const FrameHeader& h, std::span<const std::byte> payload);

  // The same for a Message in one piece, of a sender to which nothing was promised.
  void store_fast(std::uint32_t source, std::span<const std::byte> frame) {
    SegmentHeader& s = state_.header();
    ++s.room.used;
    const std::uint16_t buffer =
        take_buffer(source, FrameKind::Message, frame.size() - sizeof(FrameHeader));
    append(s.delivered, buffer);
    std::memcpy(state_.segment.receive_buffer(buffer), frame.data(), frame.size());
  }

  // Stores a datagram in a buffer that is promised to no sender, or drops and counts it.
  void store_datagram(const FrameHeader& h, std::span<const std::byte> payload);

  // --- reads that others have asked for

  bool has_reads() const { return state_.header().requests.head != kNoIndex; }

  std::uint32_t reads() const;

  // The oldest; `bytes` is its payload.
  ReceivedMessage first_read() const;
  void pop_read();

  // --- senders without room

  void on_refused(std::uint32_t rank) { refused_.insert(rank); }

  // `rank` is not refused any more, or is dead.
  void forget(std::uint32_t rank) { refused_.erase(rank); }

 private:
  // There is one: SharedRoom has been asked.
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
  MessageTaker* taker_ = nullptr;
};

}  // namespace score::pm
