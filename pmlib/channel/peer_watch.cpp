#include "pmlib/channel/peer_watch.hpp"

#include <algorithm>

namespace score::pm {

namespace {

constexpr Microseconds kRefusedLong = 3'000'000;  // the socket may be about to be opened again
constexpr std::uint32_t kAskAtOnce = 16;          // peers

}  // namespace

PeerMonitor::PeerMonitor(const ChannelState& state, FrameSender& frames, bool asks)
    : state_(state),
      frames_(frames),
      heard_(state.ranks()),
      asks_(asks),
      last_asked_(state.clock.now()) {}

std::vector<std::uint32_t> PeerMonitor::on_refused(const PeerAddress& address) {
  const Microseconds now = state_.clock.now();
  std::vector<std::uint32_t> gone;
  for (std::uint32_t rank = 0; rank < state_.ranks(); ++rank) {
    const PeerState& peer = state_.peer(rank);
    if (peer.dead != 0 || heard_[rank] == 0 || !(peer.address == address)) continue;
    const auto since = refused_since_.try_emplace(rank, now).first->second;
    if (now - since >= kRefusedLong) gone.push_back(rank);
  }
  return gone;
}

// A rank that only waits sends nothing, so it would never learn that a peer has ended. An ACK that
// reports nothing new is enough to be refused. Only a few peers are asked at a time, and none while
// frames arrive, so the traffic of a silent job does not grow with its number of ranks.
void PeerMonitor::ask() {
  last_asked_ = state_.clock.now();
  const std::uint64_t frames = state_.counters().frames_received;
  const bool is_silent = frames == frames_when_asked_;
  frames_when_asked_ = frames;
  if (!is_silent) return;
  std::uint32_t asked = 0;
  for (std::uint32_t i = 0; i < state_.ranks() && asked < kAskAtOnce; ++i) {
    const std::uint32_t rank = next_asked_++ % state_.ranks();
    PeerState& peer = state_.peer(rank);
    if (heard_[rank] == 0 || peer.dead != 0) continue;
    frames_.send_control(rank, Engine<>::on_app_ack(peer.receive));
    ++asked;
  }
}

std::int32_t PeerMonitor::next_deadline(Microseconds now, std::int32_t soonest) const {
  if (!asks_ || !has_heard_) return soonest;
  return std::min(soonest, static_cast<std::int32_t>(last_asked_ + kAskEvery - now));
}

}  // namespace score::pm
