#include "pmlib/channel/receive_queue.hpp"

namespace score::pm {

bool ReceiveQueue::receive(ReceivedMessage& message) {
  SegmentHeader& s = state_.header();
  const std::uint16_t buffer = pop(s.delivered);
  if (buffer == kNoIndex) return false;
  ReceivedBuffer& r = state_.segment.received(buffer);
  r.lent = 1;
  message = {r.source,
             r.kind,
             {state_.segment.receive_buffer(buffer) + sizeof(FrameHeader), r.length},
             buffer,
             false};
  if (r.kind == FrameKind::Datagram) [[unlikely]] {
    ++s.counters.datagrams_received;
    return true;
  }
  ++s.counters.messages_received;
  s.counters.bytes_received += r.length;
  return true;
}

void ReceiveQueue::release(std::uint32_t ticket) {
  if (ticket >= state_.segment.geometry().receive_buffers) return;
  const auto buffer = static_cast<std::uint16_t>(ticket);
  if (state_.segment.received(buffer).lent != 0) free_buffer(buffer);
}

// A message is not offered while an earlier one waits, because messages of a sender keep their
// order.
bool ReceiveQueue::offer(const FrameHeader& h, std::span<const std::byte> payload) {
  SegmentHeader& s = state_.header();
  if (taker_ == nullptr || h.kind != FrameKind::Message || s.delivered.head != kNoIndex ||
      !taker_->take(h.source, payload)) {
    return false;
  }
  s.room.drop_promise(state_.peer(h.source).receive);
  ++s.counters.messages_received;
  s.counters.bytes_received += h.length;
  return true;
}

void ReceiveQueue::store(const FrameHeader& h, std::span<const std::byte> payload) {
  SegmentHeader& s = state_.header();
  s.room.take(state_.peer(h.source).receive);
  const std::uint16_t buffer = take_buffer(h.source, h.kind, h.length);
  std::byte* at = state_.segment.receive_buffer(buffer);
  std::memcpy(at, &h, sizeof h);
  std::memcpy(at + sizeof h, payload.data(), payload.size());
  append(h.kind == FrameKind::ReadRequest ? s.requests : s.delivered, buffer);
}

void ReceiveQueue::store_datagram(const FrameHeader& h, std::span<const std::byte> payload) {
  SegmentHeader& s = state_.header();
  if (!has_room_fast()) {
    ++s.counters.datagrams_dropped;
    return;
  }
  ++s.room.used;
  const std::uint16_t buffer = take_buffer(h.source, h.kind, h.length);
  std::byte* at = state_.segment.receive_buffer(buffer);
  std::memcpy(at, &h, sizeof h);
  std::memcpy(at + sizeof h, payload.data(), payload.size());
  append(s.delivered, buffer);
}

std::uint32_t ReceiveQueue::reads() const {
  std::uint32_t count = 0;
  for (std::uint16_t i = state_.header().requests.head; i != kNoIndex;
       i = state_.segment.received(i).next) {
    ++count;
  }
  return count;
}

ReceivedMessage ReceiveQueue::first_read() const {
  const std::uint16_t buffer = state_.header().requests.head;
  const ReceivedBuffer& r = state_.segment.received(buffer);
  return {r.source,
          r.kind,
          {state_.segment.receive_buffer(buffer) + sizeof(FrameHeader), r.length},
          buffer,
          false};
}

void ReceiveQueue::pop_read() {
  free_buffer(pop(state_.header().requests));
}

std::uint16_t ReceiveQueue::pop(FifoList& list) {
  const std::uint16_t buffer = list.head;
  if (buffer == kNoIndex) return kNoIndex;
  list.head = state_.segment.received(buffer).next;
  if (list.head == kNoIndex) [[likely]]
    list.tail = kNoIndex;
  return buffer;
}

void ReceiveQueue::free_buffer(std::uint16_t buffer) {
  SegmentHeader& s = state_.header();
  state_.segment.received(buffer).lent = 0;
  state_.segment.received(buffer).next = s.free_receive_buffer;
  s.free_receive_buffer = buffer;
  s.room.release();
  if (!refused_.empty()) invite_refused();
}

// Implements rule 8: sends GO to refused senders in turn, as many as buffers allow. Each keeps its
// buffer.
void ReceiveQueue::invite_refused() {
  SegmentHeader& s = state_.header();
  while (s.room.unpromised() > 0) {
    const std::uint32_t rank = refused_.next_in_turn(s.turn);
    if (rank >= refused_.size()) return;
    refused_.erase(rank);
    s.turn = rank + 1;
    auto& side = state_.peer(rank).receive;
    s.room.promise(side);
    const auto credit = static_cast<std::uint16_t>(1 + s.room.unpromised());
    frames_.send_control(rank, Engine<>::on_app_room(side, credit));
  }
}

}  // namespace score::pm
