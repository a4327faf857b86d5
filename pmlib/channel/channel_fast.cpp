// This file is the receiving side of the fast path of a message. It handles the next message of a
// sender with which no losses, lack of buffers or timeouts are pending, and which makes no answer
// due at once. It skips the verdict, the engine's switch over kinds and states, reads, writes and
// everything behind a gap. The conditions at the beginning only leave out steps in which the same
// rules would find nothing to do. fast_path_test.cpp runs the same histories with and without it
// and compares whole contexts.
//
// When this code runs, the processor's instruction cache is full of the kernel's code for the
// frame, so short code is fast code (docs/adr/0038).
#include "pmlib/channel/channel.hpp"
#include "pmlib/wire/fast_header.hpp"

namespace score::pm {

namespace {

constexpr std::size_t kShortPayload = 256;

// Copies the payload of a frame from `skipped` on to `to`. Returns true if the frame's checksum
// fits.
bool copy_checked(std::span<const std::byte> frame, std::size_t skipped, std::byte* to) {
  const std::span<const std::byte> payload = frame.subspan(sizeof(FrameHeader));
  std::uint32_t sum = crc32c(0, payload.data(), skipped);
  sum = crc32c_copy(sum, to, payload.data() + skipped, payload.size() - skipped);
  return crc32c(sum, frame.data(), offsetof(FrameHeader, crc)) ==
         load<std::uint32_t>(frame.data() + offsetof(FrameHeader, crc));
}

}  // namespace

// The checksum is not verified here; the caller does that.
bool Channel::is_next_plain(const std::byte* frame, std::size_t length, FrameKind kind) const {
  const auto word = [frame](std::size_t offset) { return load<std::uint64_t>(frame + offset); };
  const auto half = [frame](std::size_t offset) { return load<std::uint32_t>(frame + offset); };
  const FrameIdentity& me = frames_.identity();
  const std::uint32_t source = half(offsetof(FrameHeader, source));
  if (word(0) != first_word(me.channel, length, kind) ||
      word(offsetof(FrameHeader, key)) != me.key ||
      half(offsetof(FrameHeader, generation)) != me.generation || source >= fast_sources_ ||
      half(offsetof(FrameHeader, destination)) != me.rank ||
      half(offsetof(FrameHeader, reserved)) != 0) {
    return false;
  }
  const PeerState& peer = state_.peer(source);
  return Engine<>::is_plain_ack(peer.send, stored_of(frame)) &&
         Engine<>::is_plain_data(peer.receive, sequence_of(frame)) && peer.dead == 0 &&
         watch_.has_heard(source) && early_.is_empty() && !watch_.has_refusals();
}

bool Channel::may_take_fast(const std::byte* frame, std::size_t length) const {
  if (!is_next_plain(frame, length, FrameKind::Message)) return false;
  const PeerState& peer = state_.peer(load<std::uint32_t>(frame + offsetof(FrameHeader, source)));
  if (!acks_.may_owe_fast(peer) || !received_.has_room_fast()) return false;
  const std::uint32_t sum = crc32c(0, frame + sizeof(FrameHeader), length);
  return crc32c(sum, frame, offsetof(FrameHeader, crc)) ==
         load<std::uint32_t>(frame + offsetof(FrameHeader, crc));
}

// If it returns false, nothing was done and the frame has to take the slow path.
bool Channel::take_fast(std::span<const std::byte> frame) {
  const std::byte* at = frame.data();
  const std::size_t length = frame.size() - sizeof(FrameHeader);
  if (length > kShortPayload || !may_take_fast(at, length))
    return false;  // also false if the frame is too short
  const Microseconds now = state_.clock.refresh();
  const auto source = load<std::uint32_t>(at + offsetof(FrameHeader, source));
  PeerState& peer = state_.peer(source);
  ++state_.counters().frames_received;
  Engine<>::on_sign_of_life(peer.send);
  if (stored_of(at) != peer.send.acked) window_.on_ack_fast(source, peer);
  Engine<>::on_plain_data(peer.receive);
  received_.store_fast(source, frame);
  acks_.owe_fast(peer, source, now);
  ++fast_frames_;
  return true;
}

// Handles a part of a longer message whose place is known: one pass over its bytes copies and
// checks them. If it returns false, only bytes that the right frame will overwrite have changed.
bool Channel::take_placed(std::span<const std::byte> frame) {
  if (frame.size() <= sizeof(FrameHeader)) return false;
  const std::byte* at = frame.data();
  const std::span<const std::byte> payload = frame.subspan(sizeof(FrameHeader));
  if (!is_next_plain(at, payload.size(), FrameKind::Message)) return false;
  const auto source = load<std::uint32_t>(at + offsetof(FrameHeader, source));
  const auto [to, skipped] = received_.place(source, payload);
  if (to == nullptr || !copy_checked(frame, skipped, to)) return false;
  Engine<>::on_plain_data(note_plain(at, source).receive);
  received_.placed(source, payload.size(), skipped);
  acks_.owe(source, FrameKind::Write, false);  // the last part will be stored as a message
  return true;
}

// Handles a frame from the middle of a write, which the frame before has announced: one pass over
// its bytes copies and checks them. If they are broken, only bytes that the write will overwrite
// again have changed.
bool Channel::take_middle(std::span<const std::byte> frame) {
  if (frame.size() <= sizeof(FrameHeader) + sizeof(RmaHeader)) return false;
  const std::byte* at = frame.data();
  const std::span<const std::byte> payload = frame.subspan(sizeof(FrameHeader));
  if (!is_next_plain(at, payload.size(), FrameKind::Write)) return false;
  const auto source = load<std::uint32_t>(at + offsetof(FrameHeader, source));
  std::byte* const to = memory_.place_middle(source, sequence_of(at), payload);
  if (to == nullptr || !copy_checked(frame, sizeof(RmaHeader), to)) return false;
  Engine<>::on_plain_data(note_plain(at, source).receive);
  memory_.placed_middle(payload);
  acks_.owe(source, FrameKind::Write, false);
  return true;
}

// Records what a verified frame reports besides its payload.
PeerState& Channel::note_plain(const std::byte* frame, std::uint32_t source) {
  PeerState& peer = state_.peer(source);
  state_.clock.refresh();
  ++state_.counters().frames_received;
  Engine<>::on_sign_of_life(peer.send);
  if (stored_of(frame) != peer.send.acked) window_.on_ack_fast(source, peer);
  return peer;
}

}  // namespace score::pm
