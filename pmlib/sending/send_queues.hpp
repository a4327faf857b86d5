// SendQueues holds what was queued for sending and is not acknowledged. Each peer has a chain of
// descriptors, oldest first, which cover the numbers acked + 1 .. queued without a gap. A message
// takes one number; a remote write, or memory that is sent as messages, takes one per frame. The
// class owns the context's descriptors and send buffers, and the message that is being built.
#pragma once

#include "pmlib/sending/channel_state.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace score::pm {

class SendQueues {
 public:
  // For distinguishes the users of descriptors: some are reserved for frames that peers wait for.
  enum class For { Application, Peer };

  // `state` must outlive the object.
  explicit SendQueues(const ChannelState& state);

  // --- the message being built

  // Lends memory for a message of `length` bytes to `rank`. Returns ENOBUFS if nothing is free.
  int lend(std::uint32_t rank, std::uint32_t length, std::byte** memory);

  bool is_building() const { return building_ != kNoIndex; }

  std::uint32_t building_for() const { return building_for_; }

  // Returns its descriptor, with the checksum of the payload, and counts it as sent. The caller
  // must append it.
  std::uint16_t take_built();
  // Does the same if the checksum is known.
  std::uint16_t take_built(std::uint32_t payload_crc);
  // Frees its buffer. Does nothing if there is none.
  void cancel();

  // --- descriptors and buffers; kNoIndex if none is free

  std::uint16_t take(For whom) {
    SegmentHeader& h = state_.header();
    const std::uint16_t index = h.free_descriptor;
    const std::uint32_t left = whom == For::Application ? reserved_ : 0;
    if (index == kNoIndex || h.free_descriptors <= left) return kNoIndex;
    h.free_descriptor = state_.segment.descriptor(index).next;
    --h.free_descriptors;
    state_.segment.descriptor(index) = SendDescriptor();
    return index;
  }

  // Takes a descriptor with a copy of `bytes` in a send buffer.
  std::uint16_t take_with(std::span<const std::byte> bytes);
  // Frees the buffer that `d` has, if any.
  void free_buffer_of(SendDescriptor& d);
  // Frees a descriptor that is in no queue, with its buffer.
  void release(std::uint16_t index);

  void free(std::uint16_t index) {
    SegmentHeader& h = state_.header();
    state_.segment.descriptor(index).next = h.free_descriptor;
    h.free_descriptor = index;
    ++h.free_descriptors;
  }

  // --- the chains

  // Appends the descriptor to the queue of `rank`, with the next `frames` numbers.
  void append(std::uint32_t rank, std::uint16_t index, std::uint32_t frames) {
    PeerState& peer = state_.peer(rank);
    SendDescriptor& d = state_.segment.descriptor(index);
    d.first = peer.send.queued + 1;
    d.frames = frames;
    d.next = kNoIndex;
    if (peer.tail == kNoIndex) {
      peer.head = index;
    } else {
      state_.segment.descriptor(peer.tail).next = index;
    }
    peer.tail = index;
    Engine<>::on_app_queue(peer.send, frames);
  }

  [[gnu::noinline]] void append(std::uint32_t rank, std::uint16_t index);

  // Returns the descriptor that covers `number`, searching from `index` of its chain on, or
  // kNoIndex.
  static std::uint16_t find(const Segment& segment, std::uint16_t index, std::uint32_t number) {
    while (index != kNoIndex &&
           number - segment.descriptor(index).first >= segment.descriptor(index).frames) {
      index = segment.descriptor(index).next;
    }
    return index;
  }

  // Removes the oldest descriptor of `rank` if all its numbers are acknowledged, else returns
  // kNoIndex.
  std::uint16_t pop_acknowledged(std::uint32_t rank);

  // Frees the only message of a queue. Returns false and does nothing if the queue has more entries
  // or a different kind of entry.
  bool free_only_message(std::uint32_t rank) {
    PeerState& peer = state_.peer(rank);
    const std::uint16_t index = peer.head;
    const bool is_one = index == peer.tail && index != kNoIndex;
    if (!is_one) [[unlikely]]
      return false;
    const SendDescriptor& d = state_.segment.descriptor(index);
    if (d.kind != FrameKind::Message || d.buffer == kNoIndex) [[unlikely]]
      return false;
    peer.head = peer.tail = kNoIndex;
    free_buffer(d.buffer);
    free(index);
    return true;
  }

  // Frees the whole queue of `rank`.
  void drop_all(std::uint32_t rank);

  // Returns true if a queued write reads own region `region`.
  bool is_region_in_use(std::uint32_t region) const;
  bool is_empty() const;

 private:
  std::uint16_t take_buffer() {
    SegmentHeader& h = state_.header();
    const std::uint16_t buffer = h.free_send_buffer;
    if (buffer != kNoIndex)
      std::memcpy(&h.free_send_buffer, state_.segment.send_buffer(buffer), sizeof buffer);
    return buffer;
  }

  void free_buffer(std::uint16_t buffer) {
    SegmentHeader& h = state_.header();
    std::memcpy(state_.segment.send_buffer(buffer), &h.free_send_buffer, sizeof buffer);
    h.free_send_buffer = buffer;
  }

  std::uint32_t frames_of(const SendDescriptor& d) const;

  const ChannelState& state_;
  std::uint32_t reserved_;  // descriptors reserved for frames that peers wait for
  std::uint32_t building_for_ = 0;
  std::uint16_t building_ = kNoIndex;  // its descriptor
};

}  // namespace score::pm
