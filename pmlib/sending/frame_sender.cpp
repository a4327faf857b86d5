// A remote write of a megabyte is one descriptor over some 750 numbers. Its frames are made from
// the user's memory each time they are sent, so large transfers need no buffers and no copy.
#include "pmlib/sending/frame_sender.hpp"

#include "pmlib/core/regions.hpp"
#include "pmlib/sending/send_queues.hpp"

#include <algorithm>
#include <cstring>

namespace score::pm {

namespace {

FrameKind frame_kind(ControlKind kind) {
  switch (kind) {
    case ControlKind::Lose:
      return FrameKind::Lose;
    case ControlKind::Stop:
      return FrameKind::Stop;
    case ControlKind::Go:
      return FrameKind::Go;
    default:
      return FrameKind::Ack;
  }
}

}  // namespace

FrameSender::FrameSender(const ChannelState& state, PacketDevice& device)
    : state_(state), device_(device), batch_frames_(std::min(device.batch_frames(), kMaxBatch)) {
  read_identity();
  const bool has_batches = state.header().window > 1;
  if (device.wants_joined() && has_batches)
    joined_.resize(batch_frames_ * (sizeof(FrameHeader) + state.payload_bytes()));
}

void FrameSender::read_identity() {
  const SegmentHeader& h = state_.header();
  identity_ = {h.key, h.generation, h.rank, state_.ranks(), h.channel, h.auth};
}

void FrameSender::set_alias(std::uint32_t peer, const Alias& alias) {
  aliases_.resize(identity_.size);
  aliases_[peer] = alias;
}

FrameHeader FrameSender::header_for(std::uint32_t rank, FrameKind kind) const {
  FrameHeader h;
  h.kind = kind;
  h.channel = identity_.channel;
  h.key = identity_.key;
  h.generation = identity_.generation;
  h.source = identity_.rank;
  h.destination = rank;
  ChannelFrame(h).stored() = state_.peer(rank).receive.recv;
  if (!aliases_.empty()) {
    h.key = aliases_[rank].key;
    h.source = aliases_[rank].source;
    h.destination = 0;
  }
  return h;
}

// --- control frames ----------------------------------------------------------------------------

// `sum` is crc32c(0, payload). Returns false if the device took nothing.
bool FrameSender::send_alone(std::uint32_t rank, FrameHeader& h, std::span<const std::byte> payload,
                             std::uint32_t sum) {
  h.length = static_cast<std::uint16_t>(payload.size());
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {}, payload);
  } else {
    seal(h, sum);
  }
  const FrameOut frame{std::as_bytes(std::span(&h, 1)), payload};
  ++state_.counters().frames_sent;
  return device_.send(state_.peer(rank).address, {&frame, 1}) == 1;
}

void FrameSender::send_control(std::uint32_t rank, const Control<std::uint32_t>& control) {
  FrameHeader h = header_for(rank, frame_kind(control.kind));
  if (control.kind == ControlKind::Stop) {
    StopFrame(h).refused() = control.number;
    StopFrame(h).flow_count() = control.count;
  } else if (control.kind == ControlKind::Go) {
    GoFrame(h).next() = control.number;
    GoFrame(h).flow_count() = control.count;
    GoFrame(h).free_buffers() = control.credit;
  } else {
    AckFrame(h).acknowledged() = control.number;  // the same field as in a LOSE
  }
  send_alone(rank, h, {}, 0);
}

void FrameSender::send_deny(std::uint32_t rank, std::uint32_t number, bool is_postponed) {
  FrameHeader h = header_for(rank, FrameKind::Deny);
  DenyFrame(h).denied() = number;
  DenyFrame(h).is_postponed() = is_postponed ? 1 : 0;
  send_alone(rank, h, {}, 0);
}

void FrameSender::send_lose(std::uint32_t rank, std::span<const std::byte> bits,
                            std::uint16_t bit_count) {
  FrameHeader h = header_for(rank, FrameKind::Lose);
  LoseFrame(h).acknowledged() = state_.peer(rank).receive.recv;
  LoseFrame(h).bit_count() = bit_count;
  send_alone(rank, h, bits, crc32c(0, bits.data(), bits.size()));
}

bool FrameSender::send_datagram(std::uint32_t rank, std::span<const std::byte> payload,
                                std::uint32_t sum) {
  FrameHeader h = header_for(rank, FrameKind::Datagram);
  return send_alone(rank, h, payload, sum);
}

// --- frames of a send queue --------------------------------------------------------------------

std::size_t FrameSender::send_frames(std::uint32_t rank, std::span<const std::uint32_t> numbers,
                                     bool asks) {
  const PeerState& peer = state_.peer(rank);
  const std::size_t count = numbers.size();
  const FrameHeader base = header_for(rank, FrameKind::Void);
  std::uint16_t index = peer.head;
  std::size_t filled = 0;
  is_joining_ = count > 1 && !joined_.empty() && device_.wants_joined();
  joined_bytes_ = 0;
  for (; filled < count; ++filled) {
    FrameHeader h = base;
    SequencedFrame(h).sequence() = numbers[filled];
    index = SendQueues::find(state_.segment, index, numbers[filled]);
    if (index == kNoIndex) break;  // only if the segment was damaged by another process
    if (asks && filled + 1 == count) h.flags = kAckNow;
    fill_frame(h, state_.segment.descriptor(index), filled);
  }
  if (filled == 0) return 0;
  const std::size_t sent = device_.send(peer.address, {batch_.data(), filled});
  Counters& c = state_.counters();
  c.frames_sent += sent;
  const std::uint32_t again = peer.send.max_sent - (numbers[0] - 1);
  c.frames_resent += std::min<std::size_t>(sent, again < 0x80000000 ? again : 0);
  return sent;
}

// Returns the place behind the previous frame.
std::byte* FrameSender::next_joined(std::size_t bytes) {
  std::byte* at = joined_.data() + joined_bytes_;
  joined_bytes_ += bytes;
  return at;
}

// Makes the frame of the number in `h`, which `d` covers, in place `place` of the batch. A message
// is sent from where it was built, next to its header, because a device that gathers is faster than
// a copy.
void FrameSender::fill_frame(FrameHeader& h, const SendDescriptor& d, std::size_t place) {
  h.kind = d.kind;
  if (d.kind == FrameKind::Write || d.kind == FrameKind::OpDone) return fill_write(h, d, place);
  if (d.is_in_parts()) return fill_part(h, d, place);
  const bool has_payload = d.kind != FrameKind::Void && d.buffer != kNoIndex;
  std::byte* frame =
      has_payload ? state_.segment.send_buffer(d.buffer) : scratch_[place].bytes.data();
  h.length = static_cast<std::uint16_t>(has_payload ? d.length : 0);
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {}, {frame + sizeof h, h.length});
    std::memcpy(frame, &h, sizeof h);
  } else {
    put_sealed(frame, h, has_payload ? d.payload_crc : 0);
  }
  batch_[place] = {{frame, sizeof h + h.length}, {}};
}

template <class... Words>
void FrameSender::fill_gathered(FrameHeader& h, std::span<const std::byte> body, std::size_t place,
                                Words... lead) {
  constexpr std::size_t kLead = sizeof...(Words) * sizeof(std::uint64_t);
  constexpr std::size_t kHeads = sizeof(FrameHeader) + kLead;
  static_assert(kHeads <= sizeof(Scratch));
  h.length = static_cast<std::uint16_t>(kLead + body.size());
  std::byte* at = is_joining_ ? next_joined(kHeads + body.size()) : scratch_[place].bytes.data();
  std::byte* const lead_at = at + sizeof h;
  put_words(lead_at, lead...);
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {lead_at, kLead}, body);
    std::memcpy(at, &h, sizeof h);
    if (is_joining_) std::memcpy(at + kHeads, body.data(), body.size());
  } else {
    const std::uint32_t crc = crc32c(0, lead_at, kLead);
    put_sealed(at, h,
               is_joining_ ? crc32c_copy(crc, at + kHeads, body.data(), body.size())
                           : crc32c(crc, body.data(), body.size()));
  }
  batch_[place] =
      is_joining_ ? FrameOut{{at, kHeads + body.size()}, {}} : FrameOut{{at, kHeads}, body};
}

// Handles an OpDone, too, which has no bytes behind its RmaHeader.
void FrameSender::fill_write(FrameHeader& h, const SendDescriptor& d, std::size_t place) {
  const std::uint32_t index = SequencedFrame(h).sequence() - d.first;
  const std::uint32_t each = state_.payload_bytes() - std::uint32_t{sizeof(RmaHeader)};
  const std::uint32_t done = index * each;
  const std::uint32_t bytes = std::min(each, d.length - done);
  const bool is_last = index + 1 == d.frames;
  // The application waits for the end of its own write, so the last frame requests its ACK at once.
  if (is_last && d.op != kNoIndex) h.flags = kAckNow;
  const std::uint64_t end =
      is_last ? words_of(d.remote_op, d.notify != 0 ? RmaHeader::kReplyEnd : RmaHeader::kEnd)
              : words_of(index, RmaHeader::kMiddle);
  const std::byte* body = memory_of(state_.segment, d.local_region, d.local_offset + done);
  fill_gathered(h, {body, bytes}, place, words_of(d.remote_region, d.remote_nonce),
                d.remote_offset + done, end);
}

void FrameSender::fill_part(FrameHeader& h, const SendDescriptor& d, std::size_t place) {
  const std::uint32_t each = d.bytes_per_frame(state_.payload_bytes());
  const std::uint32_t done = (SequencedFrame(h).sequence() - d.first) * each;
  const std::byte* body = memory_of(state_.segment, d.local_region, d.local_offset + done);
  fill_gathered(h, {body, std::min(each, d.length - done)}, place,
                words_of(d.remote_region, d.remote_nonce), d.remote_offset);
}

}  // namespace score::pm
