// Each frame is verified by check_frame() before use. A frame in sequence is stored before it can
// be acknowledged (G16): messages in a buffer of the segment, writes in the registered memory that
// they name.
#include "pmlib/channel/channel.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pm {

namespace {

using Receiver = ReceiveSide<std::uint32_t>;

constexpr std::size_t kFramesPerTurn = 44;  // one joined datagram, then its ACK
constexpr unsigned kEasyPolls = 128;        // some microseconds
constexpr std::uint16_t kNever = 256;       // SendSide::silent never gets there

// The first fifteen timeouts take two seconds in all, each further one takes one second.
std::uint16_t tries_for(std::uint16_t peer_timeout_s) {
  return peer_timeout_s == 0 ? kNever : static_cast<std::uint16_t>(peer_timeout_s + 13);
}

// Converts a control frame other than Deny for the engine.
Control<std::uint32_t> control_of(const FrameHeader& h) {
  switch (h.kind) {
    case FrameKind::Ack:
      return {ControlKind::Ack, AckFrame(h).acknowledged(), 0, 0};
    case FrameKind::Lose:
      return {ControlKind::Lose, LoseFrame(h).acknowledged(), 0, 0};
    case FrameKind::Stop:
      return {ControlKind::Stop, StopFrame(h).refused(), StopFrame(h).flow_count(), 0};
    case FrameKind::Go:
      return {ControlKind::Go, GoFrame(h).next(), GoFrame(h).flow_count(),
              GoFrame(h).free_buffers()};
    default:
      return {};
  }
}

}  // namespace

Channel::Channel(const Segment& segment, PacketDevice& device, JobClock& clock,
                 const ChannelOptions& options)
    : state_(segment, clock, options.limits),
      queues_(state_),
      frames_(state_, device),
      acks_(state_, frames_, options.acks),
      window_(state_, queues_, frames_, acks_),
      received_(state_, frames_),
      memory_(state_, queues_, window_, received_),
      early_(state_, frames_, acks_, memory_),
      watch_(state_, frames_, segment.header().peer_timeout_s != 0 && device.reports_refusals()),
      device_(device),
      tries_before_dead_(options.tries_before_dead),
      may_use_fast_path_(options.may_use_fast_path && frames_.identity().auth == FrameAuth::Key),
      fast_sources_(may_use_fast_path_ ? state_.ranks() : 0) {
  if (tries_before_dead_ == 0) tries_before_dead_ = tries_for(segment.header().peer_timeout_s);
  for (std::uint32_t i = 0; i < state_.ranks(); ++i) dead_peers_ += state_.peer(i).dead;
}

void Channel::set_alias(std::uint32_t peer, const Alias& alias) {
  frames_.set_alias(peer, alias);
}

// --- sending -----------------------------------------------------------------------------------

int Channel::get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer) {
  if (queues_.is_building()) return EBUSY;
  if (length > payload_bytes()) return EMSGSIZE;
  if (const int error = state_.check_peer(peer); error != 0) return error;
  return queues_.lend(peer, length, buffer);
}

// This function is not inlined: a message to a peer of this node passes its caller without needing
// its registers.
[[gnu::noinline]] int Channel::send(bool more_follows) {
  if (!queues_.is_building()) return EINVAL;
  const std::uint32_t peer = queues_.building_for();
  if (const int error = state_.check_peer(peer); error != 0) {
    queues_.cancel();
    return error;
  }
  const std::uint16_t index = queues_.take_built();
  if (!more_follows && may_use_fast_path_ && window_.send_fast(peer, index)) [[likely]]
    return 0;
  pass_on(peer, index, more_follows);
  return 0;
}

int Channel::send_summed(std::uint32_t sum, bool more_follows) {
  if (!queues_.is_building()) return EINVAL;
  const std::uint32_t peer = queues_.building_for();
  if (const int error = state_.check_peer(peer); error != 0) {
    queues_.cancel();
    return error;
  }
  pass_on(peer, queues_.take_built(sum), more_follows);
  return 0;
}

void Channel::pass_on(std::uint32_t peer, std::uint16_t index, bool more_follows) {
  if (more_follows) {
    window_.enqueue_later(peer, index);
  } else {
    window_.enqueue(peer, index);
  }
}

void Channel::send_held(std::uint32_t peer) {
  state_.clock.begin_turn();
  if (state_.check_peer(peer) == 0) window_.transmit(peer, true);
}

int Channel::send_datagram(std::uint32_t peer, std::span<const std::byte> bytes,
                           std::uint32_t sum) {
  if (const int error = state_.check_peer(peer); error != 0) return error;
  if (!frames_.send_datagram(peer, bytes, sum)) return EAGAIN;
  ++state_.counters().datagrams_sent;
  return 0;
}

// --- progress ----------------------------------------------------------------------------------

std::size_t Channel::poll() {
  state_.clock.begin_turn();
  const std::size_t fast = fast_frames_;
  const std::size_t frames = device_.receive(*this, kFramesPerTurn);
  // The fast path makes nothing due at once. Reading the clock and checking the
  // timers takes as long as a poll for frames, so it is not done each time.
  if (frames == fast_frames_ - fast && !acks_.is_due_soon() && early_.is_empty() &&
      ++easy_polls_ % kEasyPolls != 0)
    return frames;
  acks_.end_poll(frames < kFramesPerTurn);
  return frames + after_frames(frames > 0 && received_.has_taker());
}

std::size_t Channel::progress() {
  state_.clock.begin_turn();
  const std::size_t frames = device_.receive(*this, kFramesPerTurn);
  acks_.end_poll(frames < kFramesPerTurn);
  return frames + after_frames(false);
}

std::size_t Channel::after_frames(bool leaves_acks) {
  state_.clock.refresh();
  if (received_.has_reads()) memory_.answer_reads();
  if (window_.must_check_timers()) run_timers();
  if (!early_.is_empty()) early_.report_gaps();
  const std::size_t sent = window_.send_ready();
  if (!leaves_acks) send_due_acks();
  return sent;
}

void Channel::run_timers() {
  window_.check_timers(tries_before_dead_, [this](std::uint32_t rank) { declare_dead(rank); });
  watch_.ask_if_due();
}

bool Channel::next_deadline(Microseconds& microseconds) {
  const Microseconds now = state_.clock.read();
  std::int32_t soonest = INT32_MAX;
  if (!acks_.is_empty()) soonest = static_cast<std::int32_t>(acks_.deadline() - now);
  soonest = window_.next_deadline(now, watch_.next_deadline(now, soonest));
  if (soonest == INT32_MAX) return false;
  // The timers are checked in steps, so nothing would happen within one step of the last check.
  microseconds = static_cast<Microseconds>(std::max(soonest, std::int32_t{0}));
  return true;
}

bool Channel::is_quiet() const {
  const SegmentHeader& h = state_.header();
  return queues_.is_empty() && h.live_operations == 0 && h.delivered.head == kNoIndex &&
         !received_.has_reads() && !queues_.is_building();
}

void Channel::declare_dead(std::uint32_t rank) {
  PeerState& peer = state_.peer(rank);
  if (peer.dead != 0) return;
  peer.dead = 1;
  ++dead_peers_;
  // Each accepted operation must complete once.
  state_.operations.fail_peer(rank, EHOSTDOWN);
  window_.forget(rank);
  state_.header().room.drop_promise(peer.receive);
  early_.forget(rank);
  acks_.forget(rank);
  received_.forget(rank);
}

void Channel::on_refused(const PeerAddress& address) {
  state_.clock.refresh();
  for (const std::uint32_t rank : watch_.on_refused(address)) declare_dead(rank);
}

// --- frames ------------------------------------------------------------------------------------

void Channel::count_drop(FrameVerdict verdict) {
  Counters& c = state_.counters();
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
  if (take_fast(frame)) [[likely]]
    return;
  if (memory_.expects_middle() && take_middle(frame)) return;
  if (!received_.has_taker() || !take_placed(frame)) on_any_frame(frame);
}

void Channel::on_any_frame(std::span<const std::byte> frame) {
  FrameHeader h;
  const FrameVerdict verdict = check_frame(frame, frames_.identity(), h);
  if (verdict != FrameVerdict::Good) return count_drop(verdict);
  state_.clock.refresh();
  PeerState& peer = state_.peer(h.source);
  if (peer.dead != 0) return;
  ++state_.counters().frames_received;
  if (h.kind == FrameKind::Datagram) {
    return received_.store_datagram(h, frame.subspan(sizeof(FrameHeader)));
  }
  watch_.on_frame(h.source);
  Engine<>::on_sign_of_life(peer.send);
  if (is_control(h.kind)) {
    on_control(h, frame.subspan(sizeof(FrameHeader)));
  } else {
    on_sequenced(h, frame.subspan(sizeof(FrameHeader)));
  }
}

void Channel::on_control(const FrameHeader& h, std::span<const std::byte> payload) {
  if (h.kind == FrameKind::Deny) return window_.on_deny(h);
  if (h.kind == FrameKind::Lose && !payload.empty()) return window_.on_missing(h, payload);
  window_.on_control(h.source, control_of(h));
}

void Channel::on_sequenced(const FrameHeader& h, std::span<const std::byte> payload) {
  PeerState& peer = state_.peer(h.source);
  Counters& counters = state_.counters();
  const SequencedFrame frame(h);
  window_.on_control(h.source, {ControlKind::Ack, frame.stored(), 0, 0});
  if (frame.sequence() == peer.receive.recv + 1 && deny_if_due(h, payload)) return;
  const bool room = received_.has_room(peer, h.kind);
  const auto result = state_.engine.on_packet_data(peer.receive, frame.sequence(), room);
  switch (result.arrival) {
    case Arrival::Store:
      store(h, payload);
      acks_.owe(h.source, h.kind, h.flags == kAckNow);
      if (!early_.is_empty()) early_.on_stored(h.source);
      break;
    case Arrival::Refused:
      received_.on_refused(h.source);
      ++counters.stops_sent;
      break;
    case Arrival::Early:
      if (result.reply.kind == ControlKind::Lose) ++counters.loses_sent;
      return early_.on_early(h, payload, result.reply.kind == ControlKind::Lose);
    case Arrival::Duplicate:
      ++counters.duplicates;
      acks_.owe(h.source, h.kind, true);
      break;
    case Arrival::Strange:
      ++counters.dropped_strange;
      break;
  }
  if (result.reply.kind != ControlKind::None) frames_.send_control(h.source, result.reply);
}

// Once a frame was denied, only a Void may take its number, because an old copy of it may be in
// flight. A read that cannot be answered now must not wait in a buffer, or behind one, because two
// ranks that read from each other would wait forever. It is denied as postponed and requested again
// under a later number.
bool Channel::deny_if_due(const FrameHeader& h, std::span<const std::byte> payload) {
  Receiver& side = state_.peer(h.source).receive;
  const bool is_allowed = memory_.is_allowed(h, payload);
  const bool is_void = h.kind == FrameKind::Void;
  if (is_allowed && memory_.can_answer(h.kind) && (is_void || !side.has(Receiver::kDenied))) {
    return false;
  }
  side.set(Receiver::kDenied, true);
  if (!is_allowed) ++state_.counters().denied;
  frames_.send_deny(h.source, SequencedFrame(h).sequence(), is_allowed);
  return true;
}

void Channel::store(const FrameHeader& h, std::span<const std::byte> payload) {
  received_.forget(h.source);
  if (ReceiveQueue::needs_buffer(h.kind)) {
    if (!received_.offer(h, payload)) received_.store(h, payload);
    return;
  }
  state_.header().room.drop_promise(state_.peer(h.source).receive);
  if (h.kind == FrameKind::Write) {
    memory_.store_write(h.source, payload);
    memory_.expect_middle(h.source, SequencedFrame(h).sequence() + 1, payload);
  }
  if (h.kind == FrameKind::OpDone) memory_.end_operation(h.source, payload);
}

}  // namespace score::pm
