// SendWindow decides when frames of the send queues are sent: as many as a peer's window allows,
// lost frames again, and a probe where a peer has stopped this rank. It owns which peers have
// something to send, which timers run, and when the timers are checked. The engine decides which
// number is next.
#pragma once

#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"
#include "pmlib/sending/owed_acks.hpp"
#include "pmlib/sending/send_queues.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

class SendWindow {
 public:
  // All arguments must outlive the object.
  SendWindow(ChannelState& state, SendQueues& queues, FrameSender& frames, OwedAcks& acks);

  // Queues `descriptor` for `rank` and sends what the window allows.
  void enqueue(std::uint32_t rank, std::uint16_t descriptor);
  // Queues it and leaves the sending to the next turn at the latest.
  void enqueue_later(std::uint32_t rank, std::uint16_t descriptor);
  // Sends a message on the fast path. Returns false and does nothing if it may not be sent alone
  // and at once.
  bool send_fast(std::uint32_t rank, std::uint16_t descriptor);
  // Sends what the window allows; the rest is sent in a later turn. `is_end` is true if nothing
  // will follow the queued frames for a while and the caller waits for the ACK.
  [[gnu::noinline]] void transmit(std::uint32_t rank, bool is_end = false);

  // --- input from a peer's frames; `now` of the clock is that of this turn

  void on_control(std::uint32_t rank, const Control<std::uint32_t>& control);
  // Does the same as on_control() for an ACK that is_plain_ack() accepts and that reports progress.
  void on_ack_fast(std::uint32_t rank, PeerState& peer);
  // Handles a LOSE with a bit for each number behind the acknowledged one.
  void on_missing(const FrameHeader& h, std::span<const std::byte> bits);
  // Handles a frame whose operation the peer has refused.
  [[gnu::cold]] void on_deny(const FrameHeader& h);

  // --- turns

  // Sends to each peer that has something to send. Returns the number of these peers.
  std::size_t send_ready() {
    std::size_t done = 0;
    for (std::uint32_t rank = ready_.next(0); rank < ready_.size(); rank = ready_.next(rank + 1)) {
      transmit(rank);
      ++done;
    }
    return done;
  }

  // Returns true if the job was stopped since the last check of the timers, or a check is due.
  bool must_check_timers() const {
    const std::uint32_t resumes = state_.header().resumes.load(std::memory_order_acquire);
    return state_.clock.now() - last_check_ >= kTimerStep || resumes != seen_resumes_;
  }

  // Calls `on_silence(rank)` for each peer that has not answered for `tries` consecutive timeouts.
  template <class OnSilence>
  void check_timers(std::uint16_t tries, OnSilence on_silence) {
    const bool resumed = begin_check();
    for (std::uint32_t rank = armed_.next(0); rank < armed_.size(); rank = armed_.next(rank + 1)) {
      check_timer(rank, resumed);
      if (state_.peer(rank).send.silent >= tries) on_silence(rank);
    }
  }

  // Returns the microseconds from `now` to the next action, but at most `soonest`.
  std::int32_t next_deadline(Microseconds now, std::int32_t soonest) const;

  // Drops everything that is queued for `rank`.
  void forget(std::uint32_t rank);

 private:
  static constexpr Microseconds kTimerStep = 200;

  bool should_wait(const PeerState& peer, std::size_t count) const;
  bool ends_window(const PeerState& peer, std::size_t count) const;
  std::size_t send_batch(std::uint32_t rank, std::span<const std::uint32_t> numbers,
                         bool asks = false);
  [[gnu::noinline]] void release_acknowledged(std::uint32_t rank);
  std::uint16_t next_acknowledged(std::uint32_t rank);
  [[gnu::noinline]] void mark_ready(std::uint32_t rank);
  bool begin_check();
  void check_timer(std::uint32_t rank, bool resumed);

  ChannelState& state_;
  SendQueues& queues_;
  FrameSender& frames_;
  OwedAcks& acks_;
  PeerSet armed_, ready_;
  std::uint32_t seen_resumes_;
  Microseconds last_check_;
  std::uint64_t jitter_state_;
};

}  // namespace score::pm
