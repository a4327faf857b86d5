#include "pmlib/sending/owed_acks.hpp"

#include <algorithm>

namespace score::pm {

OwedAcks::OwedAcks(const ChannelState& state, FrameSender& frames, const AckRules& rules)
    : state_(state),
      frames_(frames),
      rules_(rules),
      deadline_(state.clock.now()),
      owed_(state.segment.set(PeerSetId::AckOwed)) {
  const unsigned half = std::max(1u, state.header().window / 2u);
  if (rules_.at_most > half) rules_.at_most = static_cast<std::uint8_t>(half);
  least_due_ = std::min(rules_.soon, rules_.at_most);
}

// Only messages set soon_: their sender runs out of buffers before the window ends, while the
// sender of a long write requests an ACK when it waits.
void OwedAcks::owe(std::uint32_t rank, FrameKind kind, bool at_once) {
  PeerState& peer = state_.peer(rank);
  count(peer);
  if (owed_.empty()) deadline_ = state_.clock.now() + rules_.delay;
  owed_.insert(rank);
  soon_ |= kind != FrameKind::Write && peer.unacked >= rules_.soon;
  at_once_ |= at_once || peer.unacked >= rules_.at_most;
}

void OwedAcks::send_all() {
  for (std::uint32_t rank = owed_.next(0); rank < owed_.size(); rank = owed_.next(rank + 1)) {
    PeerState& peer = state_.peer(rank);
    owed_.erase(rank);
    peer.unacked = 0;
    if (peer.dead == 0) frames_.send_control(rank, Engine<>::on_app_ack(peer.receive));
  }
  soon_ = at_once_ = false;
}

}  // namespace score::pm
