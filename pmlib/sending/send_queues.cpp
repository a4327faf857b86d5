#include "pmlib/sending/send_queues.hpp"

#include <algorithm>

namespace score::pm {

SendQueues::SendQueues(const ChannelState& state)
    : state_(state), reserved_(std::max(1u, state.segment.geometry().descriptors / 8)) {}

int SendQueues::lend(std::uint32_t rank, std::uint32_t length, std::byte** memory) {
  const std::uint16_t index = take(For::Application);
  if (index == kNoIndex) return ENOBUFS;
  const std::uint16_t buffer = take_buffer();
  if (buffer == kNoIndex) {
    free(index);
    return ENOBUFS;
  }
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = FrameKind::Message;
  d.buffer = buffer;
  d.length = length;
  building_ = index;
  building_for_ = rank;
  *memory = state_.segment.send_buffer(buffer) + sizeof(FrameHeader);
  return 0;
}

std::uint16_t SendQueues::take_built() {
  const SendDescriptor& d = state_.segment.descriptor(building_);
  return take_built(
      crc32c(0, state_.segment.send_buffer(d.buffer) + sizeof(FrameHeader), d.length));
}

std::uint16_t SendQueues::take_built(std::uint32_t payload_crc) {
  const std::uint16_t index = building_;
  building_ = kNoIndex;
  SendDescriptor& d = state_.segment.descriptor(index);
  d.payload_crc = payload_crc;
  Counters& c = state_.counters();
  ++c.messages_sent;
  c.bytes_sent += d.length;
  return index;
}

void SendQueues::cancel() {
  if (building_ == kNoIndex) return;
  free_buffer(state_.segment.descriptor(building_).buffer);
  free(building_);
  building_ = kNoIndex;
}

std::uint16_t SendQueues::take_with(std::span<const std::byte> bytes) {
  const std::uint16_t index = take(For::Application);
  if (index == kNoIndex) return kNoIndex;
  const std::uint16_t buffer = take_buffer();
  if (buffer == kNoIndex) {
    free(index);
    return kNoIndex;
  }
  SendDescriptor& d = state_.segment.descriptor(index);
  d.buffer = buffer;
  d.length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(state_.segment.send_buffer(buffer) + sizeof(FrameHeader), bytes.data(), bytes.size());
  d.payload_crc = crc32c(0, bytes.data(), bytes.size());
  return index;
}

void SendQueues::free_buffer_of(SendDescriptor& d) {
  if (d.buffer != kNoIndex) free_buffer(d.buffer);
  d.buffer = kNoIndex;
}

void SendQueues::release(std::uint16_t index) {
  const SendDescriptor& d = state_.segment.descriptor(index);
  if (d.buffer != kNoIndex) free_buffer(d.buffer);
  free(index);
}

std::uint32_t SendQueues::frames_of(const SendDescriptor& d) const {
  const std::uint32_t each = d.bytes_per_frame(state_.payload_bytes());
  if (each == 0) return 1;
  return std::max(1u, d.length / each + (d.length % each != 0 ? 1 : 0));
}

void SendQueues::append(std::uint32_t rank, std::uint16_t index) {
  append(rank, index, frames_of(state_.segment.descriptor(index)));
}

std::uint16_t SendQueues::pop_acknowledged(std::uint32_t rank) {
  PeerState& peer = state_.peer(rank);
  const std::uint16_t index = peer.head;
  if (index == kNoIndex) return kNoIndex;
  const SendDescriptor& d = state_.segment.descriptor(index);
  const std::uint32_t last = d.first + d.frames - 1;
  if (static_cast<std::int32_t>(peer.send.acked - last) < 0) return kNoIndex;
  peer.head = d.next;
  if (peer.head == kNoIndex) peer.tail = kNoIndex;
  return index;
}

void SendQueues::drop_all(std::uint32_t rank) {
  PeerState& peer = state_.peer(rank);
  while (peer.head != kNoIndex) {
    const std::uint16_t index = peer.head;
    peer.head = state_.segment.descriptor(index).next;
    release(index);
  }
  peer.tail = kNoIndex;
}

bool SendQueues::is_region_in_use(std::uint32_t region) const {
  for (std::uint32_t rank = 0; rank < state_.ranks(); ++rank) {
    for (std::uint16_t i = state_.peer(rank).head; i != kNoIndex;
         i = state_.segment.descriptor(i).next) {
      const SendDescriptor& d = state_.segment.descriptor(i);
      const bool has_region = d.kind == FrameKind::Write || d.is_in_parts();
      if (has_region && d.local_region == region) return true;
    }
  }
  return false;
}

bool SendQueues::is_empty() const {
  return state_.header().free_descriptors == state_.segment.geometry().descriptors;
}

}  // namespace score::pm
