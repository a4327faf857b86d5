#include "pmlib/sending/send_window.hpp"

#include "pmlib/core/early_frames.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>

namespace score::pm {

namespace {

using Sender = SendSide<std::uint32_t>;

constexpr int kBatchesPerTurn = 4;       // then the next peer and arriving frames are served
constexpr std::uint32_t kHeavyLoss = 2;  // too slow a path loses more than one in this many

// Returns true for a read that the peer could not answer yet: a Void fills its number, and its
// request is kept.
bool is_postponed(const SendDescriptor& d) {
  return d.kind == FrameKind::Void && d.buffer != kNoIndex;
}

}  // namespace

SendWindow::SendWindow(ChannelState& state, SendQueues& queues, FrameSender& frames, OwedAcks& acks)
    : state_(state),
      queues_(queues),
      frames_(frames),
      acks_(acks),
      armed_(state.segment.set(PeerSetId::Armed)),
      ready_(state.segment.set(PeerSetId::Ready)),
      seen_resumes_(state.header().resumes.load(std::memory_order_relaxed)),
      last_check_(state.clock.now()),
      jitter_state_(state.header().nonce_state | 1) {
  for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
    state_.engine.on_restore(state_.peer(rank).send, state_.clock.now());
  }
}

// --- sending -----------------------------------------------------------------------------------

void SendWindow::enqueue(std::uint32_t rank, std::uint16_t descriptor) {
  queues_.append(rank, descriptor);
  state_.clock.begin_turn();
  transmit(rank);
}

void SendWindow::enqueue_later(std::uint32_t rank, std::uint16_t descriptor) {
  queues_.append(rank, descriptor);
  state_.clock.begin_turn();
  ready_.insert(rank);
}

void SendWindow::mark_ready(std::uint32_t rank) {
  if (state_.engine.may_send(state_.peer(rank).send)) ready_.insert(rank);
}

// Returns true if sending now would split a large transfer into small bursts. The next ACK, or the
// timeout, then makes the window wide enough for a whole burst.
bool SendWindow::should_wait(const PeerState& peer, std::size_t count) const {
  const auto& s = peer.send;
  return count < frames_.batch_frames() / 2 && s.sent != s.acked && s.queued - s.sent > count;
}

// Returns true if `count` frames are the last for now although more are waiting; then the receiver
// should acknowledge at once. They are not the last if all waiting frames fit in the next batch.
bool SendWindow::ends_window(const PeerState& peer, std::size_t count) const {
  const auto& s = peer.send;
  const std::size_t sendable = state_.engine.sendable(s);
  const bool is_cut = s.queued - s.sent > sendable;
  return is_cut && sendable < count + frames_.batch_frames() / 2;
}

// Frames that the device does not take stay in the ready set. The clock is read after the send, so
// that the receiver does not wait for it.
void SendWindow::transmit(std::uint32_t rank, bool is_end) {
  PeerState& peer = state_.peer(rank);
  bool waits = false;
  for (int i = 0; i < kBatchesPerTurn; ++i) {
    const std::size_t count =
        std::min<std::size_t>(state_.engine.sendable(peer.send), frames_.batch_frames());
    waits = count > 0 && should_wait(peer, count);
    if (count == 0 || waits) break;
    std::array<std::uint32_t, kMaxBatch> numbers;
    std::iota(numbers.begin(), numbers.begin() + count, peer.send.sent + 1);
    const bool asks = is_end && numbers[count - 1] == peer.send.queued;
    const std::size_t sent = send_batch(rank, {numbers.data(), count}, asks);
    const Microseconds now = state_.clock.refresh();
    for (std::size_t k = 0; k < sent; ++k) state_.engine.on_app_send(peer.send, now);
    if (sent < count) break;
  }
  if (peer.send.has(Sender::kArmed)) armed_.insert(rank);
  if (state_.engine.may_send(peer.send) && !waits) {
    ready_.insert(rank);
  } else {
    ready_.erase(rank);
  }
}

std::size_t SendWindow::send_batch(std::uint32_t rank, std::span<const std::uint32_t> numbers,
                                   bool asks) {
  PeerState& peer = state_.peer(rank);
  asks = asks || ends_window(peer, numbers.size());
  const std::size_t sent = frames_.send_frames(rank, numbers, asks);
  if (sent > 0) acks_.on_sent(peer, rank);
  return sent;
}

// --- input from a peer -------------------------------------------------------------------------

void SendWindow::on_control(std::uint32_t rank, const Control<std::uint32_t>& control) {
  const Microseconds now = state_.clock.now();
  if (!state_.engine.on_packet_control(state_.peer(rank).send, control, now)) return;
  release_acknowledged(rank);
  mark_ready(rank);
}

// The buffers are freed in reverse order, so the next long message gets them in the order of their
// addresses, and a device that gathers takes neighbours as one piece.
void SendWindow::release_acknowledged(std::uint32_t rank) {
  std::array<std::uint16_t, kMaxBatch> done;
  for (std::size_t count = done.size(); count == done.size();) {
    for (count = 0; count < done.size(); ++count) {
      done[count] = next_acknowledged(rank);
      if (done[count] == kNoIndex) break;
    }
    for (std::size_t i = count; i-- > 0;) queues_.release(done[i]);
  }
}

// Ends and returns the oldest descriptor whose numbers are all acknowledged, or returns kNoIndex.
std::uint16_t SendWindow::next_acknowledged(std::uint32_t rank) {
  for (;;) {
    const std::uint16_t index = queues_.pop_acknowledged(rank);
    if (index == kNoIndex) return kNoIndex;
    SendDescriptor& d = state_.segment.descriptor(index);
    // A read or an announcement ends when the answer comes, other operations when they are stored.
    const bool ends = d.kind == FrameKind::Write || d.is_in_parts();
    if (d.op != kNoIndex && ends) state_.operations.finish(d.op, 0);
    if (!is_postponed(d)) return index;
    d.kind = FrameKind::ReadRequest;
    enqueue(rank, index);
  }
}

void SendWindow::on_missing(const FrameHeader& h, std::span<const std::byte> bits) {
  auto& s = state_.peer(h.source).send;
  const LoseFrame lose(h);
  const std::uint32_t stored = lose.acknowledged();
  const std::uint32_t count = std::min<std::uint32_t>(lose.bit_count(), EarlyFrames::kReach);
  if (bits.size() != (count + 7) / 8 || stored - s.acked > s.max_sent - s.acked) return;
  on_control(h.source, {ControlKind::Ack, stored, 0, 0});
  std::array<std::uint32_t, kMaxBatch> numbers;
  std::size_t missing = 0, batch = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((bits[i / 8] >> i % 8 & std::byte{1}) != std::byte{0}) continue;
    const std::uint32_t number = stored + 1 + i;
    if (number - s.acked > s.sent - s.acked) break;  // not sent yet, or about to be resent
    numbers[batch++] = number;
    ++missing;
    if (batch < frames_.batch_frames()) continue;
    send_batch(h.source, {numbers.data(), batch});
    batch = 0;
  }
  if (batch > 0) send_batch(h.source, {numbers.data(), batch});
  if (missing > 1 && missing * kHeavyLoss > count) state_.engine.on_heavy_loss(s);
}

// The operation keeps its numbers, because the order must have no gap; their contents are dropped.
void SendWindow::on_deny(const FrameHeader& h) {
  PeerState& peer = state_.peer(h.source);
  const std::uint32_t denied = DenyFrame(h).denied();
  const std::uint32_t ahead = denied - peer.send.acked;
  if (ahead == 0 || ahead > peer.send.max_sent - peer.send.acked) return;
  const std::uint16_t index = SendQueues::find(state_.segment, peer.head, denied);
  if (index == kNoIndex) return;
  SendDescriptor& d = state_.segment.descriptor(index);
  if (d.kind == FrameKind::Void) return;
  const bool postpones = DenyFrame(h).is_postponed() != 0 && d.kind == FrameKind::ReadRequest;
  d.kind = FrameKind::Void;
  if (!postpones) {
    if (d.op != kNoIndex) state_.operations.finish(d.op, EACCES);
    d.op = kNoIndex;
    queues_.free_buffer_of(d);
    d.length = 0;
  }
  peer.send.set(Sender::kRecovering, false);
  state_.engine.on_packet_control(peer.send, {ControlKind::Lose, denied - 1, 0, 0},
                                  state_.clock.now());
  release_acknowledged(h.source);
  mark_ready(h.source);
}

// --- timers ------------------------------------------------------------------------------------

// Returns true if the job was stopped since the last check.
bool SendWindow::begin_check() {
  // The clock below then does not count a stop that is among these.
  const std::uint32_t resumes = state_.header().resumes.load(std::memory_order_acquire);
  const bool resumed = resumes != seen_resumes_;
  last_check_ = state_.clock.now();
  seen_resumes_ = resumes;
  if (resumed) frames_.read_identity();  // the stop may have been that of a checkpoint
  return resumed;
}

void SendWindow::check_timer(std::uint32_t rank, bool resumed) {
  Sender& side = state_.peer(rank).send;
  const Engine<>& engine = state_.engine;
  if (resumed) {
    jitter_state_ = jitter_state_ * 6364136223846793005u + 1442695040888963407u;
    const auto jitter = static_cast<Microseconds>((jitter_state_ >> 33) % engine.limits().rto_min);
    Engine<>::on_resume(side, last_check_, jitter);
  }
  const TimerAction action = engine.on_timer(side, last_check_);
  if (action == TimerAction::GoBack) {
    ++state_.counters().time_outs;
    mark_ready(rank);
  } else if (action == TimerAction::Probe) {
    const std::uint32_t probe = side.acked + 1;
    send_batch(rank, {&probe, 1});
  }
  if (!side.has(Sender::kArmed)) armed_.erase(rank);
}

std::int32_t SendWindow::next_deadline(Microseconds now, std::int32_t soonest) const {
  if (!ready_.empty()) soonest = 0;
  for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
    const Sender& side = state_.peer(rank).send;
    if (!side.has(Sender::kArmed)) continue;
    soonest = std::min(soonest, static_cast<std::int32_t>(side.deadline - now));
  }
  return soonest;
}

void SendWindow::forget(std::uint32_t rank) {
  PeerState& peer = state_.peer(rank);
  queues_.drop_all(rank);
  peer.send = state_.engine.fresh_sender(peer.send.queued);
  armed_.erase(rank);
  ready_.erase(rank);
}

}  // namespace score::pm
