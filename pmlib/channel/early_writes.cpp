// A frame may be stored early only if all missing frames belong to the same write: otherwise an
// older write would overwrite a newer one. So each frame of a write except the last carries the
// number of preceding frames of the write.
#include "pmlib/channel/early_writes.hpp"

#include "pmlib/wire/fast_header.hpp"

#include <algorithm>
#include <array>

namespace score::pm {

namespace {

using Receiver = ReceiveSide<std::uint32_t>;

constexpr Microseconds kAskAgain = 100;  // at the earliest; resent frames may be lost, too
constexpr std::uint32_t kMostAsked = 4;  // times without progress; then timeouts take over

}  // namespace

bool EarlyWrites::may_store(const FrameHeader& h, std::span<const std::byte> payload) const {
  if (h.kind != FrameKind::Write || payload.size() < sizeof(RmaHeader)) return false;
  const auto rma = load<RmaHeader>(payload.data());
  const std::uint32_t next = state_.peer(h.source).receive.recv + 1;
  const std::uint32_t ahead = SequencedFrame(h).sequence() - next;
  return rma.place == RmaHeader::kMiddle && WriteMiddle(rma).frames_before() >= ahead &&
         ahead < EarlyFrames::kReach && memory_.is_allowed(h, payload);
}

void EarlyWrites::on_early(const FrameHeader& h, std::span<const std::byte> payload, bool is_new) {
  const Receiver& receive = state_.peer(h.source).receive;
  const std::uint32_t sequence = SequencedFrame(h).sequence();
  if (!receive.has(Receiver::kGap)) return;  // refused, not lost
  EarlyFrames::Gap* gap = early_.find(h.source);
  const bool is_first = gap == nullptr || (is_new && gap->held_count == 0);
  if (gap == nullptr) gap = early_.open(h.source);
  if (gap == nullptr || sequence - receive.recv > EarlyFrames::kReach) {
    if (is_new) frames_.send_lose(h.source, {}, 0);
    return;
  }
  if (is_first) {
    gap->highest = gap->reported_highest = receive.recv;
    gap->reported_at = state_.clock.now() - (is_new ? ask_again_after(h.source) : 0);
    gap->asked = 0;
  }
  const std::int32_t beyond = distance(sequence, gap->highest);
  if (beyond > 0) gap->highest = sequence;
  if (!gap->holds(sequence) && may_store(h, payload)) {
    memory_.store_write(h.source, payload);
    gap->hold(sequence);
  }
  gap->must_report |= is_new || (!is_first && beyond > 1);
}

void EarlyWrites::on_stored(std::uint32_t source) {
  EarlyFrames::Gap* gap = early_.find(source);
  if (gap == nullptr) return;
  PeerState& peer = state_.peer(source);
  gap->drop(peer.receive.recv);
  gap->asked = 0;
  gap->reported_at = state_.clock.now();
  while (gap->held_count > 0 && gap->holds(peer.receive.recv + 1)) {
    gap->drop(peer.receive.recv + 1);
    state_.engine.on_packet_data(peer.receive, peer.receive.recv + 1, true);
    acks_.count(peer);
  }
  if (distance(gap->highest, peer.receive.recv) <= 0) return early_.close(*gap);
  // The frames that are missing further on were reported, too.
  peer.receive.set(Receiver::kGap, true);
}

// Returns twice the round trip if it has been measured.
Microseconds EarlyWrites::ask_again_after(std::uint32_t rank) const {
  return std::max(kAskAgain, 2 * state_.peer(rank).send.srtt);
}

void EarlyWrites::report_gaps() {
  const Microseconds now = state_.clock.now();
  for (EarlyFrames::Gap& gap : early_.gaps()) {
    if (!gap.is_open) continue;
    const bool asks_all = now - gap.reported_at >= ask_again_after(gap.peer);
    if (!gap.must_report && !(asks_all && gap.asked < kMostAsked)) continue;
    gap.must_report = false;
    if (asks_all) {
      ++gap.asked;
      gap.reported_at = now;
      gap.reported_highest = state_.peer(gap.peer).receive.recv;
    }
    send_lose(gap);
    gap.reported_highest = gap.highest;
    if (gap.held_count == 0) early_.close(gap);
  }
}

// Sends a bit for each number behind the last stored one: 0 if the frame has to be resent. If none
// is held, all have to be resent.
void EarlyWrites::send_lose(const EarlyFrames::Gap& gap) {
  const std::uint32_t stored = state_.peer(gap.peer).receive.recv;
  const std::uint32_t count = gap.held_count > 0 ? gap.highest - stored : 0;
  std::array<std::byte, EarlyFrames::kBytes> bits{};
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = stored + 1 + i;
    if (!gap.holds(number) && distance(number, gap.reported_highest) > 0) continue;
    bits[i / 8] |= std::byte{static_cast<std::uint8_t>(1u << i % 8)};
  }
  frames_.send_lose(gap.peer, {bits.data(), (count + 7) / 8}, static_cast<std::uint16_t>(count));
}

void EarlyWrites::forget(std::uint32_t rank) {
  if (EarlyFrames::Gap* gap = early_.find(rank); gap != nullptr) early_.close(*gap);
}

}  // namespace score::pm
