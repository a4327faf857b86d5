// EarlyWrites repairs losses within remote writes: the receiver stores frames behind a gap and
// reports the missing ones, and the sender resends only those (SendWindow::on_missing). It owns the
// gaps.
//
// For the go-back-N nothing changes. A frame stored early counts as one that arrives when the gap
// is closed; a LOSE that lists missing frames is an ACK, and a resent frame is a duplicate.
// Timeouts repair every failure of this mechanism.
#pragma once

#include "pmlib/channel/remote_memory.hpp"
#include "pmlib/core/early_frames.hpp"
#include "pmlib/sending/owed_acks.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

class EarlyWrites {
 public:
  // All arguments must outlive the object.
  EarlyWrites(ChannelState& state, FrameSender& frames, OwedAcks& acks, RemoteMemory& memory)
      : state_(state), frames_(frames), acks_(acks), memory_(memory) {}

  bool is_empty() const { return early_.is_empty(); }

  // Handles a frame behind a gap. The gap is new if the engine has asked for a LOSE.
  void on_early(const FrameHeader& h, std::span<const std::byte> payload, bool is_new);
  // Handles the event that the number before the held frames was stored.
  void on_stored(std::uint32_t source);
  // Sends the LOSEs that are due. The channel calls it at the end of a turn, when most losses are
  // known.
  [[gnu::noinline]] void report_gaps();
  // Drops all held frames of `rank`.
  void forget(std::uint32_t rank);

 private:
  bool may_store(const FrameHeader& h, std::span<const std::byte> payload) const;
  Microseconds ask_again_after(std::uint32_t rank) const;
  void send_lose(const EarlyFrames::Gap& gap);

  ChannelState& state_;
  FrameSender& frames_;
  OwedAcks& acks_;
  RemoteMemory& memory_;
  EarlyFrames early_;
};

}  // namespace score::pm
