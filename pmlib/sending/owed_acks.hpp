// OwedAcks delays each ACK a little so that it can ride on a frame. One ACK answers a whole burst,
// which the engine handles as if the earlier ACKs were lost. The class owns which ranks an ACK is
// owed to and when it is sent alone.
#pragma once

#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"

#include <cstdint>

namespace score::pm {

struct AckRules {
  Microseconds delay = 100;   // an ACK waits this long for a frame to ride on
  std::uint8_t soon = 16;     // ... or until this many messages have come and no more follow
  std::uint8_t at_most = 88;  // ... or until this many frames, at most half a window
};

class OwedAcks {
 public:
  OwedAcks(const ChannelState& state, FrameSender& frames, const AckRules& rules);

  // Records an ACK for a frame of `rank` that was stored, or arrived again.
  void owe(std::uint32_t rank, FrameKind kind, bool at_once);

  // Counts a frame of `peer` that was stored before, to be acknowledged with the others.
  static void count(PeerState& peer) {
    if (peer.unacked < UINT8_MAX) ++peer.unacked;
  }

  // Does the same as owe() for a message that may_owe_fast().
  void owe_fast(PeerState& peer, std::uint32_t rank, Microseconds now) {
    ++peer.unacked;
    if (owed_.empty()) deadline_ = now + rules_.delay;
    owed_.insert(rank);
  }

  // Returns true if one more message makes no ACK due before its time.
  bool may_owe_fast(const PeerState& peer) const { return peer.unacked + 1 < least_due_; }

  // The ACK to `rank` has been sent on a frame and is no longer owed.
  void on_sent(PeerState& peer, std::uint32_t rank) {
    Engine<>::on_app_ack(peer.receive);
    owed_.erase(rank);
    peer.unacked = 0;
    if (owed_.empty()) soon_ = at_once_ = false;
  }

  // `is_drained` is true if no more frames have arrived for now.
  void end_poll(bool is_drained) { at_once_ |= soon_ && is_drained; }

  // Returns true if some ACK has to be sent once nothing more arrives.
  bool is_due_soon() const { return soon_; }

  bool is_due() const {
    return !owed_.empty() && (at_once_ || time_reached(state_.clock.now(), deadline_));
  }

  // Sends all owed ACKs alone.
  [[gnu::noinline]] void send_all();

  bool is_empty() const { return owed_.empty(); }

  Microseconds deadline() const { return deadline_; }

  void forget(std::uint32_t rank) { owed_.erase(rank); }

 private:
  const ChannelState& state_;
  FrameSender& frames_;
  AckRules rules_;
  std::uint8_t least_due_;  // unacknowledged frames that make an ACK due
  bool soon_ = false;
  bool at_once_ = false;
  Microseconds deadline_;
  PeerSet owed_;
};

}  // namespace score::pm
