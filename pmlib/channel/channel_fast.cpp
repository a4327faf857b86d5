// The short way of a message: what is asked of almost every small message and nothing else, in
// little code. A processor's cache of instructions is full of the kernel's way of the frame when
// this runs, so each line of 64 bytes of it costs some 2 ns (docs/adr/0038).
//
// Nothing is decided here that the long way would not decide: the conditions at the beginning only
// leave out what the same rules would find to be nothing. plain_test.cpp compares both.
#include "pmlib/channel/channel.hpp"

#include <cstring>

namespace score::pm {

namespace {

constexpr std::size_t kShortPayload = 256;
constexpr std::uint32_t kPlainKinds =
    kFrameMagic | kFrameVersion << 8 | static_cast<std::uint32_t>(FrameKind::Message) << 16;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The first eight bytes of a header.
constexpr std::uint64_t first_word(std::uint16_t channel, std::size_t length) {
  return words_of(kPlainKinds, channel | static_cast<std::uint32_t>(length) << 16);
}

std::uint32_t sequence_of(const std::byte* frame) {
  return load<std::uint32_t>(frame + offsetof(FrameHeader, number));
}

std::uint32_t ack_of(const std::byte* frame) {
  return load<std::uint32_t>(frame + offsetof(FrameHeader, word));
}

}  // namespace

// A message of this job that is the next of its sender, where no losses and no lack of room have
// to be remembered, and that makes no answer due at once?
bool Channel::is_plain(const std::byte* frame, std::size_t length) const {
  const auto word = [frame](std::size_t offset) { return load<std::uint64_t>(frame + offset); };
  const auto half = [frame](std::size_t offset) { return load<std::uint32_t>(frame + offset); };
  const std::uint32_t source = half(offsetof(FrameHeader, source));
  if (word(0) != first_word(identity_.channel, length) ||
      word(offsetof(FrameHeader, key)) != identity_.key ||
      half(offsetof(FrameHeader, generation)) != identity_.generation || source >= plain_sources_ ||
      half(offsetof(FrameHeader, destination)) != identity_.rank ||
      half(offsetof(FrameHeader, reserved)) != 0) {
    return false;
  }
  const PeerState& peer = segment_.peer(source);
  if (!E::is_plain_ack(peer.send, ack_of(frame)) ||
      !E::is_plain_data(peer.receive, sequence_of(frame)) || peer.dead != 0 ||
      peer.unacked + 1 >= ack_plain_ || heard_[source] == 0 || has_troubles() ||
      segment_.header().room.unpromised() == 0) {
    return false;
  }
  const std::uint32_t sum = crc32c(0, frame + sizeof(FrameHeader), length);
  return crc32c(sum, frame, offsetof(FrameHeader, crc)) == half(offsetof(FrameHeader, crc));
}

// Takes a frame that is plain. False: it is not, and nothing was done.
bool Channel::take_plain(std::span<const std::byte> frame) {
  const std::byte* at = frame.data();
  const std::size_t length = frame.size() - sizeof(FrameHeader);
  if (length > kShortPayload || !is_plain(at, length)) return false;  // too short a frame likewise
  refresh_now();
  const auto source = load<std::uint32_t>(at + offsetof(FrameHeader, source));
  PeerState& peer = segment_.peer(source);
  SegmentHeader& s = segment_.header();
  ++s.counters.frames_received;
  E::on_sign_of_life(peer.send);
  if (ack_of(at) != peer.send.acked) {
    engine_.on_plain_ack(peer.send, now_);
    release_all(source);
  }
  E::on_plain_data(peer.receive);
  ++s.room.used;
  const std::uint16_t buffer = take_receive_buffer(source, FrameKind::Message, length);
  append(s.delivered, buffer);
  std::memcpy(segment_.receive_buffer(buffer), at, frame.size());
  ++peer.unacked;
  if (ack_owed_.empty()) ack_deadline_ = now_ + options_.ack_delay;
  ack_owed_.insert(source);
  ++fast_frames_;
  return true;
}

// Of a queue whose numbers are acknowledged all.
void Channel::release_all(std::uint32_t rank) {
  PeerState& peer = segment_.peer(rank);
  const std::uint16_t index = peer.head;
  const bool is_one = index == peer.tail && index != kNoIndex;
  if (!is_one || segment_.descriptor(index).kind != FrameKind::Message) [[unlikely]] {
    return release_acknowledged(rank);
  }
  peer.head = peer.tail = kNoIndex;
  free_send_buffer(segment_.descriptor(index).buffer);
  free_descriptor(index);
}

// Sends the message of descriptor `index`, if it may go at once and nothing goes with it. False: it
// may not, and nothing was done.
bool Channel::send_plain(std::uint32_t rank, std::uint16_t index) {
  PeerState& peer = segment_.peer(rank);
  if (!may_use_fast_path_ || !engine_.is_plain_send(peer.send)) return false;
  link_frames(peer, index, 1);
  is_now_fresh_ = false;
  const SendDescriptor& d = segment_.descriptor(index);
  Alias self{identity_.key, identity_.rank};
  std::uint32_t destination = rank;
  if (!aliases_.empty()) self = aliases_[rank], destination = 0;
  std::byte* at = segment_.send_buffer(d.buffer);
  put_words(at, first_word(identity_.channel, d.length), self.key,
            words_of(identity_.generation, self.source), words_of(destination, d.first),
            std::uint64_t{peer.receive.recv});
  put_crc(at, d.payload_crc);
  batch_[0] = {{at, sizeof(FrameHeader) + d.length}, {}};
  if (device_.send(peer.address, {batch_.data(), 1}) == 0) [[unlikely]] {
    ready_.insert(rank);
    return true;
  }
  ++segment_.header().counters.frames_sent;
  E::on_app_ack(peer.receive);
  ack_owed_.erase(rank);
  peer.unacked = 0;
  refresh_now();
  engine_.on_app_send(peer.send, now_);
  armed_.insert(rank);
  ready_.erase(rank);
  return true;
}

}  // namespace score::pm
