// PeerMonitor detects peers whose process has ended, because their node refuses frames for them. It
// owns which peers were heard from, and since when frames to them have been refused.
#pragma once

#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace score::pm {

class PeerMonitor {
 public:
  // If `asks` is true, it sends an ACK to silent peers now and then, to find out if it is refused.
  PeerMonitor(const ChannelState& state, FrameSender& frames, bool asks);

  bool has_heard(std::uint32_t rank) const { return heard_[rank] != 0; }

  bool has_refusals() const { return !refused_since_.empty(); }

  void on_frame(std::uint32_t rank) {
    if (heard_[rank] == 0) heard_[rank] = has_heard_ = true;
    if (!refused_since_.empty()) refused_since_.erase(rank);
  }

  // Handles a refusal by the node of `address`. Returns the ranks there that are gone. A rank that
  // is restarted, moved or not started yet is refused only for a short time, so it does not count.
  std::vector<std::uint32_t> on_refused(const PeerAddress& address);

  // Sends the ACKs to silent peers when they are due.
  void ask_if_due() {
    if (asks_ && state_.clock.now() - last_asked_ >= kAskEvery) ask();
  }

  // Has the contract of SendWindow::next_deadline().
  std::int32_t next_deadline(Microseconds now, std::int32_t soonest) const;

 private:
  static constexpr Microseconds kAskEvery = 1'000'000;

  [[gnu::cold]] void ask();

  const ChannelState& state_;
  FrameSender& frames_;
  std::vector<std::uint8_t> heard_;  // since this object was made
  bool has_heard_ = false;
  bool asks_;
  std::map<std::uint32_t, Microseconds> refused_since_;
  Microseconds last_asked_;
  std::uint32_t next_asked_ = 0;
  std::uint64_t frames_when_asked_ = 0;
};

}  // namespace score::pm
