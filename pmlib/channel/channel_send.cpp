// The sending half of a channel.
//
// A send queue is a chain of descriptors per peer, oldest first; together they cover the numbers
// acked + 1 .. queued without a hole. A message is one number, a remote write of a megabyte is one
// descriptor over some 750 numbers: its frames are made from the user's memory each time they are
// sent, so large transfers need no buffers and no copy. The engine decides which number goes next;
// this file turns the number into a frame.
#include "pmlib/channel/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

namespace score::pm {

namespace {

constexpr int kBatchesPerTurn = 4;  // then other peers and arriving frames get their turn

constexpr std::uint16_t kNever = 256;  // SendSide::silent never gets there

// The first fifteen time-outs take two seconds, each further one a second.
std::uint16_t tries_for(std::uint16_t patience_s) {
  return patience_s == 0 ? kNever : static_cast<std::uint16_t>(patience_s + 13);
}

EngineLimits with_window(EngineLimits limits, std::uint16_t window) {
  limits.window = window;
  return limits;
}

}  // namespace

Channel::Channel(const Segment& segment, PacketDevice& device, JobClock& clock,
                 const ChannelOptions& options)
    : segment_(segment),
      device_(device),
      clock_(clock),
      options_(options),
      operations_(segment),
      engine_(with_window(options.limits, segment.header().window)),
      armed_(segment.set(PeerSetId::Armed)),
      ack_owed_(segment.set(PeerSetId::AckOwed)),
      ready_(segment.set(PeerSetId::Ready)),
      refused_(segment.set(PeerSetId::Refused)),
      batch_frames_(std::min(device.batch_frames(), kMaxBatch)),
      reserved_(std::max(1u, segment.geometry().descriptors / 8)) {
  const SegmentHeader& h = segment_.header();
  if (device_.wants_joined())
    joined_.resize(batch_frames_ * (sizeof(FrameHeader) + payload_bytes()));
  identity_ = {h.key, h.generation, h.rank, segment_.geometry().size, h.channel, h.auth};
  heard_.resize(identity_.size);
  asks_ = h.patience_s != 0 && device_.tells_refusals();
  const unsigned half = std::max(1u, h.window / 2u);
  if (options_.ack_at_most > half) options_.ack_at_most = static_cast<std::uint8_t>(half);
  ack_plain_ = std::min(options_.ack_soon, options_.ack_at_most);
  may_use_fast_path_ = options_.may_use_fast_path && identity_.auth == FrameAuth::Key;
  plain_sources_ = may_use_fast_path_ ? identity_.size : 0;
  if (options_.tries_before_dead == 0) options_.tries_before_dead = tries_for(h.patience_s);
  seen_resumes_ = h.resumes.load(std::memory_order_relaxed);
  jitter_state_ = h.nonce_state | 1;
  now_ = ack_deadline_ = last_timer_run_ = last_asked_ = clock_.now();
  for (std::uint32_t i = 0; i < identity_.size; ++i) dead_peers_ += segment_.peer(i).dead;
  for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
    engine_.on_restore(segment_.peer(rank).send, now_);
  }
}

// --- messages ----------------------------------------------------------------------------------

int Channel::check_peer(std::uint32_t peer) const {
  if (peer >= identity_.size) return EINVAL;
  return segment_.peer(peer).dead != 0 ? EHOSTDOWN : 0;
}

int Channel::get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** memory) {
  if (building_ != kNoIndex) return EBUSY;
  if (length > payload_bytes()) return EMSGSIZE;
  if (const int error = check_peer(peer); error != 0) return error;
  const std::uint16_t index = take_descriptor(reserved_);
  if (index == kNoIndex) return ENOBUFS;
  const std::uint16_t buffer = take_send_buffer();
  if (buffer == kNoIndex) {
    free_descriptor(index);
    return ENOBUFS;
  }
  SendDescriptor& d = segment_.descriptor(index);
  d.kind = FrameKind::Message;
  d.buffer = buffer;
  d.length = length;
  building_ = index;
  building_for_ = peer;
  *memory = segment_.send_buffer(buffer) + sizeof(FrameHeader);
  return 0;
}

int Channel::send(bool more_follows) {
  if (building_ == kNoIndex) return EINVAL;
  const std::uint16_t index = building_;
  const std::uint32_t peer = building_for_;
  if (const int error = check_peer(peer); error != 0) {
    cancel_send();
    return error;
  }
  building_ = kNoIndex;
  SendDescriptor& d = segment_.descriptor(index);
  d.payload_crc = crc32c(0, segment_.send_buffer(d.buffer) + sizeof(FrameHeader), d.length);
  Counters& c = segment_.header().counters;
  ++c.messages_sent;
  c.bytes_sent += d.length;
  if (!more_follows && send_plain(peer, index)) [[likely]]
    return 0;
  append_to_queue(peer, index);
  if (more_follows) {
    ready_.insert(peer);  // goes with the next turn at the latest
  } else {
    transmit(peer);
  }
  return 0;
}

void Channel::send_held(std::uint32_t peer) {
  is_now_fresh_ = false;
  if (check_peer(peer) == 0) transmit(peer);
}

void Channel::cancel_send() {
  if (building_ == kNoIndex) return;
  free_send_buffer(segment_.descriptor(building_).buffer);
  free_descriptor(building_);
  building_ = kNoIndex;
}

// --- descriptors and buffers ---------------------------------------------------------------------

// The last `left` are not taken: answers need them.
std::uint16_t Channel::take_descriptor(std::uint32_t left) {
  SegmentHeader& h = segment_.header();
  const std::uint16_t index = h.free_descriptor;
  if (index == kNoIndex || h.free_descriptors <= left) return kNoIndex;
  h.free_descriptor = segment_.descriptor(index).next;
  --h.free_descriptors;
  segment_.descriptor(index) = SendDescriptor();
  return index;
}

void Channel::free_descriptor(std::uint16_t index) {
  SegmentHeader& h = segment_.header();
  segment_.descriptor(index).next = h.free_descriptor;
  h.free_descriptor = index;
  ++h.free_descriptors;
}

std::uint16_t Channel::take_send_buffer() {
  SegmentHeader& h = segment_.header();
  const std::uint16_t buffer = h.free_send_buffer;
  if (buffer != kNoIndex)
    std::memcpy(&h.free_send_buffer, segment_.send_buffer(buffer), sizeof buffer);
  return buffer;
}

void Channel::free_send_buffer(std::uint16_t buffer) {
  SegmentHeader& h = segment_.header();
  std::memcpy(segment_.send_buffer(buffer), &h.free_send_buffer, sizeof buffer);
  h.free_send_buffer = buffer;
}

std::uint32_t Channel::frames_for(FrameKind kind, std::uint32_t length) const {
  if (kind != FrameKind::Write) return 1;
  const std::uint32_t each = payload_bytes() - std::uint32_t{sizeof(RmaHeader)};
  return std::max(1u, length / each + (length % each != 0 ? 1 : 0));
}

void Channel::enqueue(std::uint32_t rank, std::uint16_t index) {
  append_to_queue(rank, index);
  transmit(rank);
}

void Channel::append_to_queue(std::uint32_t rank, std::uint16_t index) {
  const SendDescriptor& d = segment_.descriptor(index);
  link_frames(segment_.peer(rank), index, frames_for(d.kind, d.length));
  is_now_fresh_ = false;
}

void Channel::link_frames(PeerState& peer, std::uint16_t index, std::uint32_t frames) {
  SendDescriptor& d = segment_.descriptor(index);
  d.first = peer.send.queued + 1;
  d.frames = frames;
  d.next = kNoIndex;
  if (peer.tail == kNoIndex) {
    peer.head = index;
  } else {
    segment_.descriptor(peer.tail).next = index;
  }
  peer.tail = index;
  E::on_app_queue(peer.send, frames);
}

void Channel::release_acknowledged(std::uint32_t rank) {
  PeerState& peer = segment_.peer(rank);
  while (peer.head != kNoIndex) {
    const std::uint16_t index = peer.head;
    const SendDescriptor& d = segment_.descriptor(index);
    const std::uint32_t last = d.first + d.frames - 1;
    if (static_cast<std::int32_t>(peer.send.acked - last) < 0) break;
    // A read or an announcement ends when the answer comes, the others when they are stored.
    if (d.op != kNoIndex && d.kind == FrameKind::Write) operations_.finish(d.op, 0);
    peer.head = d.next;
    if (peer.head == kNoIndex) peer.tail = kNoIndex;
    if (is_postponed(d)) {
      ask_again(rank, index);
      continue;
    }
    if (d.buffer != kNoIndex) free_send_buffer(d.buffer);
    free_descriptor(index);
  }
}

// A read that the peer could not answer yet: a Void fills its number, its request is kept.
bool Channel::is_postponed(const SendDescriptor& d) {
  return d.kind == FrameKind::Void && d.buffer != kNoIndex;
}

void Channel::ask_again(std::uint32_t rank, std::uint16_t index) {
  segment_.descriptor(index).kind = FrameKind::ReadRequest;
  enqueue(rank, index);
}

// --- frames ------------------------------------------------------------------------------------

FrameHeader Channel::header_for(std::uint32_t rank, FrameKind kind) const {
  FrameHeader h;
  h.kind = kind;
  h.channel = identity_.channel;
  h.key = identity_.key;
  h.generation = identity_.generation;
  h.source = identity_.rank;
  h.destination = rank;
  ChannelFrame(h).stored() = segment_.peer(rank).receive.recv;
  if (!aliases_.empty()) {
    h.key = aliases_[rank].key;
    h.source = aliases_[rank].source;
    h.destination = 0;
  }
  return h;
}

// Of a frame without payload.
void Channel::seal_header(FrameHeader& h) const {
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {}, {});
  } else {
    seal(h, 0);
  }
}

void Channel::set_alias(std::uint32_t peer, const Alias& alias) {
  aliases_.resize(identity_.size);
  aliases_[peer] = alias;
}

void Channel::send_control(std::uint32_t rank, FrameKind kind,
                           const Control<std::uint32_t>& control) {
  FrameHeader h = header_for(rank, kind);
  h.number = control.number;
  h.half0 = control.count;
  h.half1 = control.credit;
  seal_header(h);
  const FrameOut frame{std::as_bytes(std::span(&h, 1)), {}};
  device_.send(segment_.peer(rank).address, {&frame, 1});
  ++segment_.header().counters.frames_sent;
}

void Channel::mark_ready(std::uint32_t rank) {
  if (engine_.may_send(segment_.peer(rank).send)) ready_.insert(rank);
}

// Would sending now cut a large transfer into small bursts? Then the next ACK, or the time-out,
// makes the window wide enough for a whole one.
bool Channel::should_wait_for_window(const PeerState& peer, std::size_t count) const {
  const auto& s = peer.send;
  return count < batch_frames_ / 2 && s.sent != s.acked && s.queued - s.sent > count;
}

// Are `count` frames the last for now, although more wait? Then the receiver should know. They are
// not if all that waits goes in the next batch.
bool Channel::ends_window(const PeerState& peer, std::size_t count) const {
  const auto& s = peer.send;
  const std::size_t sendable = engine_.sendable(s);
  const bool is_cut = s.queued - s.sent > sendable;
  return is_cut && sendable < count + batch_frames_ / 2;
}

// Sends what the window allows; what the device does not take stays in the ready set. The clock is
// read behind the send: the receiver does not wait for it.
void Channel::transmit(std::uint32_t rank) {
  PeerState& peer = segment_.peer(rank);
  bool waits = false;
  for (int i = 0; i < kBatchesPerTurn; ++i) {
    const std::size_t count = std::min<std::size_t>(engine_.sendable(peer.send), batch_frames_);
    waits = count > 0 && should_wait_for_window(peer, count);
    if (count == 0 || waits) break;
    std::array<std::uint32_t, kMaxBatch> numbers;
    std::iota(numbers.begin(), numbers.begin() + count, peer.send.sent + 1);
    const std::size_t sent = transmit_batch(peer, rank, {numbers.data(), count});
    refresh_now();
    for (std::size_t k = 0; k < sent; ++k) engine_.on_app_send(peer.send, now_);
    if (sent < count) break;
  }
  if (peer.send.has(SendSide<std::uint32_t>::kArmed)) armed_.insert(rank);
  if (engine_.may_send(peer.send) && !waits) {
    ready_.insert(rank);
  } else {
    ready_.erase(rank);
  }
}

// Offers the frames of `numbers`, which rise, to the device. Returns how many it took.
std::size_t Channel::transmit_batch(PeerState& peer, std::uint32_t rank,
                                    std::span<const std::uint32_t> numbers) {
  const std::size_t count = numbers.size();
  const FrameHeader base = header_for(rank, FrameKind::Void);
  std::uint16_t index = peer.head;
  std::size_t filled = 0;
  const bool ends = ends_window(peer, count);
  is_joining_ = count > 1 && !joined_.empty() && device_.wants_joined();
  joined_bytes_ = 0;
  for (; filled < count; ++filled) {
    FrameHeader h = base;
    SequencedFrame(h).sequence() = numbers[filled];
    while (index != kNoIndex &&
           h.number - segment_.descriptor(index).first >= segment_.descriptor(index).frames) {
      index = segment_.descriptor(index).next;
    }
    if (index == kNoIndex) break;  // only with a segment broken from outside
    if (ends && filled + 1 == count) h.flags = kAckNow;
    fill_frame(h, segment_.descriptor(index), filled);
  }
  if (filled == 0) return 0;
  const std::size_t sent = device_.send(peer.address, {batch_.data(), filled});
  Counters& c = segment_.header().counters;
  c.frames_sent += sent;
  const std::uint32_t again = peer.send.max_sent - (numbers[0] - 1);
  c.frames_resent += std::min<std::size_t>(sent, again < 0x80000000 ? again : 0);
  if (sent > 0) {  // the frames carry the ACK
    E::on_app_ack(peer.receive);
    ack_owed_.erase(rank);
    peer.unacked = 0;
  }
  return sent;
}

// Behind the frame before.
std::byte* Channel::next_joined(std::size_t bytes) {
  std::byte* at = joined_.data() + joined_bytes_;
  joined_bytes_ += bytes;
  return at;
}

// Makes the frame of number `h`, which `d` covers, in place `place` of the batch.
void Channel::fill_frame(FrameHeader& h, const SendDescriptor& d, std::size_t place) {
  h.kind = d.kind;
  if (d.kind == FrameKind::Write || d.kind == FrameKind::OpDone) return fill_write(h, d, place);
  const bool has_payload = d.kind != FrameKind::Void && d.buffer != kNoIndex;
  std::byte* buffer = has_payload ? segment_.send_buffer(d.buffer) : scratch_[place].bytes.data();
  h.length = static_cast<std::uint16_t>(has_payload ? d.length : 0);
  const std::size_t bytes = sizeof h + h.length;
  std::byte* at = is_joining_ ? next_joined(bytes) : buffer;
  if (is_joining_) std::memcpy(at + sizeof h, buffer + sizeof h, h.length);
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {}, {at + sizeof h, h.length});
    std::memcpy(at, &h, sizeof h);
  } else {
    put_sealed(at, h, has_payload ? d.payload_crc : 0);
  }
  batch_[place] = {{at, bytes}, {}};
}

// Also of an OpDone, which has no bytes behind its RmaHeader.
void Channel::fill_write(FrameHeader& h, const SendDescriptor& d, std::size_t place) {
  const std::uint32_t each = payload_bytes() - std::uint32_t{sizeof(RmaHeader)};
  const std::uint32_t done = (h.number - d.first) * each;
  const std::uint32_t bytes = std::min(each, d.length - done);
  const bool is_last = h.number - d.first + 1 == d.frames;
  // The application waits for the end of its own write.
  if (is_last && d.op != kNoIndex) h.flags = kAckNow;
  h.length = static_cast<std::uint16_t>(sizeof(RmaHeader) + bytes);
  constexpr std::size_t kHeads = sizeof(FrameHeader) + sizeof(RmaHeader);
  const std::byte* body = memory_of(d.local_region, d.local_offset + done);
  std::byte* at = is_joining_ ? next_joined(kHeads + bytes) : scratch_[place].bytes.data();
  std::byte* rma = at + sizeof h;
  const std::uint64_t end =
      is_last ? words_of(d.remote_op, d.notify) : words_of(h.number - d.first, RmaHeader::kMiddle);
  put_words(rma, words_of(d.remote_region, d.remote_nonce), d.remote_offset + done, end);
  std::span<const std::byte> rest(body, bytes);
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {rma, sizeof(RmaHeader)}, rest);
    std::memcpy(at, &h, sizeof h);
    if (is_joining_) std::memcpy(at + kHeads, body, bytes);
  } else {
    const std::uint32_t crc = crc32c(0, rma, sizeof(RmaHeader));
    put_sealed(at, h,
               is_joining_ ? crc32c_copy(crc, at + kHeads, body, bytes) : crc32c(crc, body, bytes));
  }
  batch_[place] = is_joining_ ? FrameOut{{at, kHeads + bytes}, {}} : FrameOut{{at, kHeads}, rest};
}

void Channel::flush_acks() {
  for (std::uint32_t rank = ack_owed_.next(0); rank < ack_owed_.size();
       rank = ack_owed_.next(rank + 1)) {
    PeerState& peer = segment_.peer(rank);
    ack_owed_.erase(rank);
    peer.unacked = 0;
    if (peer.dead == 0) send_control(rank, FrameKind::Ack, E::on_app_ack(peer.receive));
  }
  ack_soon_ = ack_at_once_ = false;
}

}  // namespace score::pm
