// Losses within remote writes: the receiver stores what comes behind a gap and reports what is
// missing, the sender sends that again and nothing else (SendWindow::on_missing). Owns the gaps.
//
// For the go-back-N nothing changes. A frame stored early counts as one that arrives when the gap
// is closed; a LOSE that lists missing frames is an ACK, and a frame that is sent again is a
// duplicate. Time-outs repair every failure of this.
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
  // All outlive the object.
  EarlyWrites(ChannelState& state, FrameSender& frames, OwedAcks& acks, RemoteMemory& memory)
      : state_(state), frames_(frames), acks_(acks), memory_(memory) {}

  bool is_empty() const { return early_.is_empty(); }

  // A frame behind a gap, which is new if the engine has asked for a LOSE.
  void on_early(const FrameHeader& h, std::span<const std::byte> payload, bool is_new);
  // The number before the held frames was stored.
  void on_stored(std::uint32_t source);
  // Sends the LOSEs that are due: at the end of a turn, when most losses are known.
  [[gnu::noinline]] void report_gaps();
  // Nothing of `rank` is held any more.
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
