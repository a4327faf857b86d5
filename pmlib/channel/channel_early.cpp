// Losses within remote writes: the receiver stores what comes behind a gap and says what is
// missing, the sender sends that again and nothing else.
//
// For the go-back-N nothing changes. A frame stored early counts as one that arrives when the gap
// is closed; a LOSE that lists what is missing is an ACK, and what is sent again is a duplicate.
// Whatever goes wrong here the time-out mends.
//
// A frame may be stored early only if all that is missing belongs to the same write, or an older
// write would come to lie over a newer one. So each frame of a write but the last says how many of
// the write were before it.
#include "pmlib/channel/channel.hpp"

#include <algorithm>
#include <cstring>

namespace score::pm {

namespace {

std::uint32_t sequence_of(const FrameHeader& h) {
  return SequencedFrame(h).sequence();
}

constexpr Microseconds kAskAgain = 100;  // at the earliest: what was sent again is lost, too
constexpr std::uint32_t kMostAsked = 4;  // times without progress; then time-outs have to do
constexpr std::uint32_t kHeavyLoss = 2;  // more than one in so many: the path is too slow

}  // namespace

bool Channel::may_store_early(const FrameHeader& h, std::span<const std::byte> payload) const {
  RmaHeader rma;
  if (h.kind != FrameKind::Write || payload.size() < sizeof rma) return false;
  std::memcpy(&rma, payload.data(), sizeof rma);
  const std::uint32_t ahead = sequence_of(h) - (segment_.peer(h.source).receive.recv + 1);
  return rma.place == RmaHeader::kMiddle && WriteMiddle(rma).frames_before() >= ahead &&
         ahead < EarlyFrames::kReach && is_allowed(h, payload);
}

void Channel::on_early(const FrameHeader& h, std::span<const std::byte> payload, bool is_new) {
  const auto& receive = segment_.peer(h.source).receive;
  if (!receive.has(ReceiveSide<std::uint32_t>::kGap)) return;  // refused, not lost
  EarlyFrames::Gap* gap = early_.find(h.source);
  const bool is_first = gap == nullptr || (is_new && gap->held_count == 0);
  if (gap == nullptr) gap = early_.open(h.source);
  if (gap == nullptr || sequence_of(h) - receive.recv > EarlyFrames::kReach) {
    if (is_new) send_control(h.source, FrameKind::Lose, {ControlKind::Lose, receive.recv, 0, 0});
    return;
  }
  if (is_first) {
    gap->highest = gap->told_highest = receive.recv;
    gap->told_at = is_new ? now_ - ask_again_after(h.source) : now_;
    gap->asked = 0;
  }
  const std::int32_t beyond = distance(sequence_of(h), gap->highest);
  if (beyond > 0) gap->highest = sequence_of(h);
  if (!gap->holds(sequence_of(h)) && may_store_early(h, payload)) {
    store_write(h.source, payload);
    gap->hold(sequence_of(h));
  }
  gap->must_tell |= is_new || (!is_first && beyond > 1);
}

// The number before what is held was stored.
void Channel::count_held(std::uint32_t source) {
  EarlyFrames::Gap* gap = early_.find(source);
  if (gap == nullptr) return;
  PeerState& peer = segment_.peer(source);
  gap->drop(peer.receive.recv);
  gap->asked = 0;
  gap->told_at = now_;
  while (gap->held_count > 0 && gap->holds(peer.receive.recv + 1)) {
    gap->drop(peer.receive.recv + 1);
    engine_.on_packet_data(peer.receive, peer.receive.recv + 1, true);
    if (peer.unacked < UINT8_MAX) ++peer.unacked;
  }
  if (distance(gap->highest, peer.receive.recv) <= 0) return early_.close(*gap);
  // What is missing further on was told, too.
  peer.receive.set(ReceiveSide<std::uint32_t>::kGap, true);
}

// Twice a round trip, if that is known.
Microseconds Channel::ask_again_after(std::uint32_t rank) const {
  return std::max(kAskAgain, 2 * segment_.peer(rank).send.srtt);
}

// At the end of a turn: by then most of what is missing of a burst is known.
void Channel::tell_gaps() {
  for (EarlyFrames::Gap& gap : early_.gaps()) {
    if (!gap.is_open) continue;
    const bool asks_all = now_ - gap.told_at >= ask_again_after(gap.peer);
    if (!gap.must_tell && !(asks_all && gap.asked < kMostAsked)) continue;
    gap.must_tell = false;
    if (asks_all) {
      ++gap.asked;
      gap.told_at = now_;
      gap.told_highest = segment_.peer(gap.peer).receive.recv;
    }
    send_lose(gap);
    gap.told_highest = gap.highest;
    if (gap.held_count == 0) early_.close(gap);
  }
}

// A bit for each number behind the last one stored: 0 if it has to come again. Without any held
// everything has to.
void Channel::send_lose(const EarlyFrames::Gap& gap) {
  PeerState& peer = segment_.peer(gap.peer);
  FrameHeader h = header_for(gap.peer, FrameKind::Lose);
  const LoseFrame lose(h);
  lose.acknowledged() = peer.receive.recv;
  std::array<std::byte, EarlyFrames::kBytes> bits{};
  if (gap.held_count > 0) {
    lose.bit_count() = static_cast<std::uint16_t>(gap.highest - peer.receive.recv);
    h.length = static_cast<std::uint16_t>((lose.bit_count() + 7u) / 8);
  }
  for (std::uint32_t i = 0; i < lose.bit_count(); ++i) {
    const std::uint32_t number = peer.receive.recv + 1 + i;
    if (!gap.holds(number) && distance(number, gap.told_highest) > 0) continue;
    bits[i / 8] |= std::byte{static_cast<std::uint8_t>(1u << i % 8)};
  }
  const std::span<const std::byte> payload(bits.data(), h.length);
  if (identity_.auth == FrameAuth::Tag) {
    seal_by_tag(h, identity_.key, {}, payload);
  } else {
    seal(h, crc32c(0, payload.data(), payload.size()));
  }
  const FrameOut frame{std::as_bytes(std::span(&h, 1)), payload};
  device_.send(peer.address, {&frame, 1});
  ++segment_.header().counters.frames_sent;
}

// Sends again what the receiver has not got of the numbers behind the last one that it
// acknowledges.
void Channel::on_missing(const FrameHeader& h, std::span<const std::byte> bits) {
  PeerState& peer = segment_.peer(h.source);
  auto& s = peer.send;
  const std::uint32_t stored = LoseFrame(h).acknowledged();
  const std::uint32_t count =
      std::min<std::uint32_t>(LoseFrame(h).bit_count(), EarlyFrames::kReach);
  if (bits.size() != (count + 7) / 8 || stored - s.acked > s.max_sent - s.acked) return;
  if (engine_.on_packet_control(s, {ControlKind::Ack, stored, 0, 0}, now_)) {
    release_acknowledged(h.source);
    mark_ready(h.source);
  }
  std::array<std::uint32_t, kMaxBatch> numbers;
  std::size_t missing = 0, batch = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((bits[i / 8] >> i % 8 & std::byte{1}) != std::byte{0}) continue;
    if (stored + 1 + i - s.acked > s.sent - s.acked) break;  // not sent, or about to be again
    numbers[batch++] = stored + 1 + i;
    ++missing;
    if (batch < batch_frames_) continue;
    transmit_batch(peer, h.source, {numbers.data(), batch});
    batch = 0;
  }
  if (batch > 0) transmit_batch(peer, h.source, {numbers.data(), batch});
  if (missing > 1 && missing * kHeavyLoss > count) engine_.on_heavy_loss(s);
}

}  // namespace score::pm
