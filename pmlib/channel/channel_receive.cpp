// The receiving half of a channel, its timers and its turn.
//
// A frame is believed only after check_frame(). What is in sequence is stored before it can be
// acknowledged (G16): messages in a buffer of the segment, writes in the registered memory they
// name. ACKs wait a little for a frame to ride on; a burst is answered by one ACK, which in the
// engine's terms is the same as the earlier ones being lost.
#include "pmlib/channel/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace score::pm {

namespace {

using Sender = SendSide<std::uint32_t>;
using Receiver = ReceiveSide<std::uint32_t>;

constexpr std::size_t kFramesPerTurn = 44;        // one joined datagram, then its ACK
constexpr unsigned kEasyPolls = 128;              // some microseconds
constexpr Microseconds kTimerStep = 200;          // timers are looked at this often
constexpr Microseconds kRefusedLong = 3'000'000;  // somebody may be about to open the socket again
constexpr Microseconds kAskEvery = 1'000'000;
constexpr std::uint32_t kAskAtOnce = 16;  // peers

ControlKind engine_kind(FrameKind kind) {
  switch (kind) {
    case FrameKind::Ack:
      return ControlKind::Ack;
    case FrameKind::Lose:
      return ControlKind::Lose;
    case FrameKind::Stop:
      return ControlKind::Stop;
    case FrameKind::Go:
      return ControlKind::Go;
    default:
      return ControlKind::None;
  }
}

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

template <class T>
T load(std::span<const std::byte> bytes, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

// --- a turn ------------------------------------------------------------------------------------

std::size_t Channel::poll() {
  is_now_fresh_ = false;
  const std::size_t plain = fast_frames_;
  const std::size_t frames = device_.receive(*this, kFramesPerTurn);
  // Plain frames make nothing due at once. Reading the clock and looking at timers takes as long as
  // a look for frames: not each time.
  if (frames == fast_frames_ - plain && !ack_soon_ && early_.is_empty() &&
      ++easy_polls_ % kEasyPolls != 0)
    return frames;
  ack_at_once_ |= ack_soon_ && frames < kFramesPerTurn;
  return frames + after_frames();
}

std::size_t Channel::progress() {
  is_now_fresh_ = false;
  const std::size_t frames = device_.receive(*this, kFramesPerTurn);
  ack_at_once_ |= ack_soon_ && frames < kFramesPerTurn;
  return frames + after_frames();
}

void Channel::refresh_now() {
  if (is_now_fresh_) return;
  now_ = clock_.now();
  is_now_fresh_ = true;
}

std::size_t Channel::after_frames() {
  refresh_now();
  std::size_t done = 0;
  if (segment_.header().requests.head != kNoIndex) serve_requests();
  const std::uint32_t resumes = segment_.header().resumes.load(std::memory_order_relaxed);
  if (now_ - last_timer_run_ >= kTimerStep || resumes != seen_resumes_) run_timers();
  if (!early_.is_empty()) tell_gaps();
  if (!ack_owed_.empty() && (ack_at_once_ || time_reached(now_, ack_deadline_))) {
    flush_acks();
  }
  for (std::uint32_t rank = ready_.next(0); rank < ready_.size(); rank = ready_.next(rank + 1)) {
    transmit(rank);
    ++done;
  }
  return done;
}

void Channel::run_timers() {
  const Microseconds now = now_;
  const std::uint32_t resumes = segment_.header().resumes.load(std::memory_order_relaxed);
  const bool resumed = resumes != seen_resumes_;
  last_timer_run_ = now;
  seen_resumes_ = resumes;
  for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
    PeerState& peer = segment_.peer(rank);
    std::uint32_t probe = 0;
    if (resumed) {
      jitter_state_ = jitter_state_ * 6364136223846793005u + 1442695040888963407u;
      E::on_resume(peer.send, now,
                   static_cast<Microseconds>((jitter_state_ >> 33) % options_.limits.rto_min));
    }
    switch (engine_.on_timer(peer.send, now)) {
      case TimerAction::GoBack:
        ++segment_.header().counters.time_outs;
        mark_ready(rank);
        break;
      case TimerAction::Probe:
        probe = peer.send.acked + 1;
        transmit_batch(peer, rank, {&probe, 1});
        break;
      case TimerAction::None:
        break;
    }
    if (!peer.send.has(Sender::kArmed)) armed_.erase(rank);
    if (peer.send.silent >= options_.tries_before_dead) declare_dead(rank);
  }
  if (asks_ && now - last_asked_ >= kAskEvery) ask_for_refusals();
}

// A rank that only waits sends nothing, so it would never be told that nobody is there any more. An
// ACK that says nothing new is enough to be refused. A few peers at a time, and none while frames
// arrive: the traffic of a silent job stays the same however many ranks it has.
void Channel::ask_for_refusals() {
  last_asked_ = now_;
  const std::uint64_t frames = segment_.header().counters.frames_received;
  const bool is_silent = frames == frames_when_asked_;
  frames_when_asked_ = frames;
  if (!is_silent) return;
  std::uint32_t asked = 0;
  for (std::uint32_t i = 0; i < identity_.size && asked < kAskAtOnce; ++i) {
    const std::uint32_t rank = next_asked_++ % identity_.size;
    PeerState& peer = segment_.peer(rank);
    if (heard_[rank] == 0 || peer.dead != 0) continue;
    send_control(rank, FrameKind::Ack, E::on_app_ack(peer.receive));
    ++asked;
  }
}

// Whoever is restarted or moved is refused for a moment, and before a rank has started it is too.
void Channel::on_refused(const PeerAddress& address) {
  refresh_now();
  for (std::uint32_t rank = 0; rank < identity_.size; ++rank) {
    const PeerState& peer = segment_.peer(rank);
    if (peer.dead != 0 || heard_[rank] == 0 || !(peer.address == address)) continue;
    const auto since = refused_since_.try_emplace(rank, now_).first->second;
    if (now_ - since >= kRefusedLong) declare_dead(rank);
  }
}

bool Channel::next_deadline(Microseconds& microseconds) {
  const Microseconds now = clock_.now();
  std::int32_t soonest = INT32_MAX;
  if (!ready_.empty()) soonest = 0;
  if (!ack_owed_.empty())
    soonest = std::min(soonest, static_cast<std::int32_t>(ack_deadline_ - now));
  if (asks_ && has_heard_) {
    soonest = std::min(soonest, static_cast<std::int32_t>(last_asked_ + kAskEvery - now));
  }
  for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
    const PeerState& peer = segment_.peer(rank);
    if (!peer.send.has(Sender::kArmed)) continue;
    soonest = std::min(soonest, static_cast<std::int32_t>(peer.send.deadline - now));
  }
  if (soonest == INT32_MAX) return false;
  // Timers are looked at in steps: sooner than a step after the last look nothing would happen.
  microseconds = static_cast<Microseconds>(std::max(soonest, std::int32_t{0}));
  return true;
}

bool Channel::is_quiet() const {
  const SegmentHeader& h = segment_.header();
  return h.free_descriptors == segment_.geometry().descriptors && h.live_operations == 0 &&
         h.delivered.head == kNoIndex && h.requests.head == kNoIndex && building_ == kNoIndex;
}

void Channel::declare_dead(std::uint32_t rank) {
  PeerState& peer = segment_.peer(rank);
  if (peer.dead != 0) return;
  peer.dead = 1;
  ++dead_peers_;
  // Whatever was accepted is owed one completion.
  operations_.fail_peer(rank, EHOSTDOWN);
  while (peer.head != kNoIndex) {
    const std::uint16_t index = peer.head;
    const SendDescriptor d = segment_.descriptor(index);
    peer.head = d.next;
    if (d.buffer != kNoIndex) free_send_buffer(d.buffer);
    free_descriptor(index);
  }
  peer.tail = kNoIndex;
  peer.send = engine_.fresh_sender(peer.send.queued);
  segment_.header().room.drop_promise(peer.receive);
  if (EarlyFrames::Gap* gap = early_.find(rank); gap != nullptr) early_.close(*gap);
  for (PeerSet* set : {&armed_, &ack_owed_, &ready_, &refused_}) set->erase(rank);
}

// --- frames ------------------------------------------------------------------------------------

void Channel::count_drop(FrameVerdict verdict) {
  Counters& c = segment_.header().counters;
  switch (verdict) {
    case FrameVerdict::Malformed:
      ++c.dropped_malformed;
      break;
    case FrameVerdict::Foreign:
      ++c.dropped_foreign;
      break;
    case FrameVerdict::Stale:
      ++c.dropped_stale;
      break;
    case FrameVerdict::Corrupt:
      ++c.dropped_corrupt;
      break;
    case FrameVerdict::Forged:
      ++c.dropped_forged;
      break;
    case FrameVerdict::Good:
      break;
  }
}

void Channel::on_frame(std::span<const std::byte> frame) {
  if (!take_plain(frame)) [[unlikely]]
    on_any_frame(frame);
}

void Channel::on_any_frame(std::span<const std::byte> frame) {
  FrameHeader h;
  const FrameVerdict verdict = check_frame(frame, identity_, h);
  if (verdict != FrameVerdict::Good) return count_drop(verdict);
  refresh_now();
  PeerState& peer = segment_.peer(h.source);
  if (peer.dead != 0) return;
  ++segment_.header().counters.frames_received;
  if (heard_[h.source] == 0) heard_[h.source] = has_heard_ = true;
  if (!refused_since_.empty()) refused_since_.erase(h.source);
  E::on_sign_of_life(peer.send);
  if (is_control(h.kind)) {
    on_control(h, frame.subspan(sizeof(FrameHeader)));
  } else {
    on_sequenced(h, frame.subspan(sizeof(FrameHeader)));
  }
}

void Channel::on_control(const FrameHeader& h, std::span<const std::byte> payload) {
  PeerState& peer = segment_.peer(h.source);
  if (h.kind == FrameKind::Deny) return on_deny(peer, h);
  if (h.kind == FrameKind::Lose && !payload.empty()) return on_missing(h, payload);
  const Control<std::uint32_t> control{engine_kind(h.kind), h.number, h.half0, h.half1};
  if (!engine_.on_packet_control(peer.send, control, now_)) return;
  release_acknowledged(h.source);
  mark_ready(h.source);
}

// Our operation was refused. Its numbers stay, or the order would have a hole; their contents go.
void Channel::on_deny(PeerState& peer, const FrameHeader& h) {
  const std::uint32_t denied = DenyFrame(h).denied();
  const std::uint32_t ahead = denied - peer.send.acked;
  if (ahead == 0 || ahead > peer.send.max_sent - peer.send.acked) return;
  std::uint16_t index = peer.head;
  while (index != kNoIndex &&
         denied - segment_.descriptor(index).first >= segment_.descriptor(index).frames) {
    index = segment_.descriptor(index).next;
  }
  if (index == kNoIndex || segment_.descriptor(index).kind == FrameKind::Void) return;
  SendDescriptor& d = segment_.descriptor(index);
  const bool postpones = DenyFrame(h).is_postponed() != 0 && d.kind == FrameKind::ReadRequest;
  d.kind = FrameKind::Void;
  if (!postpones) {
    if (d.op != kNoIndex) operations_.finish(d.op, EACCES);
    d.op = kNoIndex;
    if (d.buffer != kNoIndex) free_send_buffer(d.buffer);
    d.buffer = kNoIndex;
    d.length = 0;
  }
  peer.send.set(Sender::kRecovering, false);
  engine_.on_packet_control(peer.send, {ControlKind::Lose, denied - 1, 0, 0}, now_);
  release_acknowledged(h.source);
  mark_ready(h.source);
}

bool Channel::needs_buffer(FrameKind kind) const {
  return kind == FrameKind::Message || kind == FrameKind::Large || kind == FrameKind::ReadRequest;
}

void Channel::on_sequenced(const FrameHeader& h, std::span<const std::byte> payload) {
  PeerState& peer = segment_.peer(h.source);
  SegmentHeader& s = segment_.header();
  if (engine_.on_packet_control(peer.send, {ControlKind::Ack, SequencedFrame(h).stored(), 0, 0},
                                now_)) {
    release_acknowledged(h.source);
    mark_ready(h.source);
  }
  if (SequencedFrame(h).sequence() == peer.receive.recv + 1 && deny_if_due(h, payload)) return;
  const bool room = !needs_buffer(h.kind) || s.room.has_room_for(peer.receive);
  const auto result = engine_.on_packet_data(peer.receive, SequencedFrame(h).sequence(), room);
  switch (result.arrival) {
    case Arrival::Store:
      store(h, payload);
      owe_ack(h, h.flags == kAckNow);
      if (!early_.is_empty()) count_held(h.source);
      break;
    case Arrival::Refused:
      refused_.insert(h.source);
      ++s.counters.stops_sent;
      break;
    case Arrival::Early:
      if (result.reply.kind == ControlKind::Lose) ++s.counters.loses_sent;
      return on_early(h, payload, result.reply.kind == ControlKind::Lose);
    case Arrival::Duplicate:
      ++s.counters.duplicates;
      owe_ack(h, true);
      break;
    case Arrival::Strange:
      ++s.counters.dropped_strange;
      break;
  }
  if (result.reply.kind != ControlKind::None) {
    send_control(h.source, frame_kind(result.reply.kind), result.reply);
  }
}

// Once a frame was denied only a Void may take its number: an old copy of it may be under way. A
// read that cannot be answered now must not wait in a buffer, or behind one: two ranks that ask
// each other would wait for ever. It is denied as postponed and asked again under a later number.
bool Channel::deny_if_due(const FrameHeader& h, std::span<const std::byte> payload) {
  auto& side = segment_.peer(h.source).receive;
  const bool is_allowed_now = is_allowed(h, payload);
  const bool is_void = h.kind == FrameKind::Void;
  if (is_allowed_now && can_answer(h.kind) && (is_void || !side.has(Receiver::kDenied))) {
    return false;
  }
  side.set(Receiver::kDenied, true);
  if (!is_allowed_now) ++segment_.header().counters.denied;
  const std::uint16_t postpones = is_allowed_now ? 1 : 0;
  send_control(h.source, FrameKind::Deny,
               {ControlKind::None, SequencedFrame(h).sequence(), 0, postpones});
  return true;
}

// Each read that waits for its answer has a descriptor to come.
bool Channel::can_answer(FrameKind kind) const {
  if (kind != FrameKind::ReadRequest) return true;
  std::uint32_t waiting = 0;
  for (std::uint16_t i = segment_.header().requests.head; i != kNoIndex;
       i = segment_.received(i).next) {
    ++waiting;
  }
  return segment_.header().free_descriptors > waiting;
}

// May the payload be acted upon? Only asked of the next frame in sequence.
bool Channel::is_allowed(const FrameHeader& h, std::span<const std::byte> payload) const {
  switch (h.kind) {
    case FrameKind::Write: {
      if (payload.size() < sizeof(RmaHeader)) return false;
      const auto rma = load<RmaHeader>(payload);
      return covers(rma.region, rma.nonce, rma.offset, payload.size() - sizeof rma);
    }
    case FrameKind::ReadRequest: {
      if (payload.size() != sizeof(RmaHeader) + sizeof(ReadTarget)) return false;
      const auto rma = load<RmaHeader>(payload);
      const auto target = load<ReadTarget>(payload, sizeof rma);
      return covers(rma.region, rma.nonce, rma.offset, target.length);
    }
    case FrameKind::OpDone:
      return payload.size() == sizeof(RmaHeader);
    case FrameKind::Large:
      return payload.size() == sizeof(LargeHeader);
    default:
      return payload.size() <= payload_bytes();
  }
}

void Channel::store(const FrameHeader& h, std::span<const std::byte> payload) {
  refused_.erase(h.source);
  SharedRoom& room = segment_.header().room;
  if (needs_buffer(h.kind)) {
    room.take(segment_.peer(h.source).receive);
    return store_in_buffer(h, payload);
  }
  room.drop_promise(segment_.peer(h.source).receive);
  if (h.kind == FrameKind::Write) store_write(h.source, payload);
  if (h.kind == FrameKind::OpDone) {
    const auto rma = load<RmaHeader>(payload);
    const OperationEnd end(rma);
    operations_.finish_for(h.source, end.operation(), static_cast<int>(end.error() & 0xff));
  }
}

void Channel::store_in_buffer(const FrameHeader& h, std::span<const std::byte> payload) {
  SegmentHeader& s = segment_.header();
  const std::uint16_t buffer = take_receive_buffer(h.source, h.kind, h.length);
  std::byte* at = segment_.receive_buffer(buffer);
  std::memcpy(at, &h, sizeof h);
  std::memcpy(at + sizeof h, payload.data(), payload.size());
  append(h.kind == FrameKind::ReadRequest ? s.requests : s.delivered, buffer);
}

// There is one: SharedRoom has been asked.
std::uint16_t Channel::take_receive_buffer(std::uint32_t source, FrameKind kind,
                                           std::size_t length) {
  SegmentHeader& s = segment_.header();
  const std::uint16_t buffer = s.free_receive_buffer;
  ReceivedBuffer& r = segment_.received(buffer);
  s.free_receive_buffer = r.next;
  r.source = source;
  r.length = static_cast<std::uint16_t>(length);
  r.kind = kind;
  r.lent = 0;
  return buffer;
}

void Channel::store_write(std::uint32_t source, std::span<const std::byte> payload) {
  const auto rma = load<RmaHeader>(payload);
  const auto bytes = payload.subspan(sizeof rma);
  if (!bytes.empty()) std::memcpy(memory_of(rma.region, rma.offset), bytes.data(), bytes.size());
  segment_.header().counters.rma_bytes_written += bytes.size();
  if (rma.place == RmaHeader::kReplyEnd) {
    operations_.finish_for(source, WriteEnd(rma).operation(), 0);
  }
}

// A sender of messages runs out of buffers before the window ends; one of a long write says when it
// waits.
void Channel::owe_ack(const FrameHeader& h, bool at_once) {
  PeerState& peer = segment_.peer(h.source);
  if (peer.unacked < UINT8_MAX) ++peer.unacked;
  if (ack_owed_.empty()) ack_deadline_ = now_ + options_.ack_delay;
  ack_owed_.insert(h.source);
  ack_soon_ |= h.kind != FrameKind::Write && peer.unacked >= options_.ack_soon;
  ack_at_once_ |= at_once || peer.unacked >= options_.ack_at_most;
}

// --- messages ----------------------------------------------------------------------------------

void Channel::append(FifoList& list, std::uint16_t buffer) {
  segment_.received(buffer).next = kNoIndex;
  if (list.tail == kNoIndex) [[likely]] {
    list.head = buffer;
  } else {
    segment_.received(list.tail).next = buffer;
  }
  list.tail = buffer;
}

std::uint16_t Channel::pop(FifoList& list) {
  const std::uint16_t buffer = list.head;
  if (buffer == kNoIndex) return kNoIndex;
  list.head = segment_.received(buffer).next;
  if (list.head == kNoIndex) [[likely]]
    list.tail = kNoIndex;
  return buffer;
}

bool Channel::receive(ReceivedMessage& message) {
  SegmentHeader& s = segment_.header();
  const std::uint16_t buffer = pop(s.delivered);
  if (buffer == kNoIndex) return false;
  ReceivedBuffer& r = segment_.received(buffer);
  r.lent = 1;
  message = {r.source,
             r.kind,
             {segment_.receive_buffer(buffer) + sizeof(FrameHeader), r.length},
             buffer,
             false};
  ++s.counters.messages_received;
  s.counters.bytes_received += r.length;
  return true;
}

void Channel::release(std::uint32_t ticket) {
  if (ticket >= segment_.geometry().receive_buffers) return;
  const auto buffer = static_cast<std::uint16_t>(ticket);
  if (segment_.received(buffer).lent != 0) free_receive_buffer(buffer);
}

void Channel::free_receive_buffer(std::uint16_t buffer) {
  SegmentHeader& s = segment_.header();
  segment_.received(buffer).lent = 0;
  segment_.received(buffer).next = s.free_receive_buffer;
  s.free_receive_buffer = buffer;
  s.room.release();
  if (!refused_.empty()) invite_refused();
}

// Rule 8: GO to refused senders in turn, as many as buffers allow; each keeps its buffer.
void Channel::invite_refused() {
  SegmentHeader& s = segment_.header();
  while (s.room.unpromised() > 0) {
    const std::uint32_t rank = refused_.next_in_turn(s.turn);
    if (rank >= refused_.size()) return;
    refused_.erase(rank);
    s.turn = rank + 1;
    Receiver& side = segment_.peer(rank).receive;
    s.room.promise(side);
    const auto credit = static_cast<std::uint16_t>(1 + s.room.unpromised());
    send_control(rank, FrameKind::Go, E::on_app_room(side, credit));
  }
}

// --- reads that others asked for ---------------------------------------------------------------

void Channel::serve_requests() {
  FifoList& requests = segment_.header().requests;
  while (requests.head != kNoIndex && serve_request(requests.head)) {
    free_receive_buffer(pop(requests));
  }
}

// Queues the answer. False if there is no descriptor for it yet.
bool Channel::serve_request(std::uint16_t buffer) {
  const ReceivedBuffer& r = segment_.received(buffer);
  const std::span<const std::byte> payload(segment_.receive_buffer(buffer) + sizeof(FrameHeader),
                                           r.length);
  const auto rma = load<RmaHeader>(payload);
  const auto target = load<ReadTarget>(payload, sizeof rma);
  if (segment_.peer(r.source).dead != 0) return true;
  if (!covers(rma.region, rma.nonce, rma.offset, target.length)) {
    return end_remote(r.source, target.op, EACCES) == 0;
  }
  const std::uint16_t index = take_descriptor(0);
  if (index == kNoIndex) return false;
  SendDescriptor& d = segment_.descriptor(index);
  d.kind = FrameKind::Write;
  d.notify = 1;
  d.length = target.length;
  d.local_region = rma.region;
  d.local_offset = rma.offset;
  d.remote_region = target.region;
  d.remote_nonce = target.nonce;
  d.remote_offset = target.offset;
  d.remote_op = target.op;
  enqueue(r.source, index);
  return true;
}

}  // namespace score::pm
