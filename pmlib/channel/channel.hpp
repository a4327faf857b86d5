// A channel over a packet device: reliable, ordered messages and remote memory between the ranks
// of a job. All its lasting state lies in the context segment; the object itself can be thrown
// away and made anew over the same or a restored segment at any time.
//
// It joins parts that each own something: SendQueues, SendWindow, FrameSender and OwedAcks send,
// ReceiveQueue, RemoteMemory, EarlyWrites and PeerWatch take in. This class checks what arrives,
// asks the engine about it and gives it to its part.
//
// Not thread-safe: one thread at a time. Nothing blocks. Errors are errno values, 0 is success.
#pragma once

#include "pmlib/channel/early_writes.hpp"
#include "pmlib/channel/peer_watch.hpp"
#include "pmlib/channel/receive_queue.hpp"
#include "pmlib/channel/remote_memory.hpp"
#include "pmlib/core/packet_device.hpp"
#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/frame_sender.hpp"
#include "pmlib/sending/owed_acks.hpp"
#include "pmlib/sending/send_queues.hpp"
#include "pmlib/sending/send_window.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

struct ChannelOptions {
  EngineLimits limits;  // `window` is taken from the segment
  AckRules acks;
  bool may_use_fast_path = true;
  // Consecutive time-outs after which a peer counts as dead; 0: by the context's peer timeout.
  std::uint16_t tries_before_dead = 0;
};

class Channel final : private FrameSink {
 public:
  // `device` and `clock` outlive the channel.
  Channel(const Segment& segment, PacketDevice& device, JobClock& clock,
          const ChannelOptions& options);

  // Memory for a message of `length` <= payload_bytes() to `peer`, to be built in place. ENOBUFS:
  // nothing free, progress() and try again. EBUSY: the buffer lent before was not sent yet.
  int get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer);
  // Sends what get_send_buffer() lent. If `more_follows` to the same peer it may wait for that, to
  // go out together; send_held() says that no more comes before the ACK.
  int send(bool more_follows = false);
  // The same if the sender knows the checksum of the payload, crc32c(0, bytes).
  int send_summed(std::uint32_t sum, bool more_follows);
  void send_held(std::uint32_t peer);
  // Sends one frame that is neither numbered nor acknowledged: nothing is kept of it here. `sum` is
  // crc32c(0, bytes). EAGAIN: the device took nothing.
  int send_datagram(std::uint32_t peer, std::span<const std::byte> bytes, std::uint32_t sum);

  // For giving a lent buffer back unsent, and for asking whether a region is in use.
  SendQueues& queues() { return queues_; }

  // Messages that have arrived.
  ReceiveQueue& received() { return received_; }

  RemoteMemory& memory() { return memory_; }

  // From now on `taker` is offered messages as they arrive, and poll() leaves the ACKs that it
  // makes due to send_due_acks(): the owner calls that after it has dealt with what came, so that
  // they ride on its answers.
  void set_taker(MessageTaker* taker) { received_.set_taker(taker); }

  void send_due_acks() {
    if (acks_.is_due()) acks_.send_all();
  }

  // Takes in frames, answers them, resends, sends what waits. Returns how much happened.
  std::size_t progress();
  // The same for a loop that waits for a message: cheaper, looks at timers only now and then.
  std::size_t poll();

  // True if calling progress() later is needed although nothing arrives; then in `microseconds`.
  bool next_deadline(Microseconds& microseconds);
  // Nothing queued, sent and unacknowledged, received or under way.
  bool is_quiet() const;

  bool has_dead_peer() const { return dead_peers_ != 0; }

  // Differs from before when a peer was found dead since.
  std::uint32_t dead_peers() const { return dead_peers_; }

  [[gnu::cold]] void declare_dead(std::uint32_t peer);
  // For channels without common ranks: nothing may be sent to `peer` before. Not part of a saved
  // context.
  void set_alias(std::uint32_t peer, const Alias& alias);

  // ACKs that are owed; send_all() does not wait for something to ride on.
  OwedAcks& acks() { return acks_; }

  std::uint32_t payload_bytes() const { return state_.payload_bytes(); }

  const Segment& segment() const { return state_.segment; }

  // Messages that were taken by the fast path since this object was made.
  std::size_t fast_frames() const { return fast_frames_; }

 private:
  // To the window; of the slow path.
  void pass_on(std::uint32_t peer, std::uint16_t index, bool more_follows);

  // --- the fast path (channel_fast.cpp)
  bool is_next_plain(const std::byte* frame, std::size_t length, FrameKind kind) const;
  bool may_take_fast(const std::byte* frame, std::size_t length) const;
  bool take_fast(std::span<const std::byte> frame);
  [[gnu::noinline]] bool take_placed(std::span<const std::byte> frame);
  [[gnu::noinline]] bool take_middle(std::span<const std::byte> frame);
  PeerState& note_plain(const std::byte* frame, std::uint32_t source);

  // --- frames
  void on_frame(std::span<const std::byte> frame) override;
  [[gnu::noinline]] void on_any_frame(std::span<const std::byte> frame);
  void on_refused(const PeerAddress& address) override;
  [[gnu::cold]] void count_drop(FrameVerdict verdict);
  void on_sequenced(const FrameHeader& h, std::span<const std::byte> payload);
  void on_control(const FrameHeader& h, std::span<const std::byte> payload);
  bool deny_if_due(const FrameHeader& h, std::span<const std::byte> payload);
  void store(const FrameHeader& h, std::span<const std::byte> payload);

  // --- turns
  std::size_t after_frames(bool leaves_acks);
  [[gnu::noinline]] void run_timers();

  ChannelState state_;
  SendQueues queues_;
  FrameSender frames_;
  OwedAcks acks_;
  SendWindow window_;
  ReceiveQueue received_;
  RemoteMemory memory_;
  EarlyWrites early_;
  PeerWatch watch_;
  PacketDevice& device_;
  std::uint16_t tries_before_dead_;
  bool may_use_fast_path_;
  std::uint32_t fast_sources_;  // messages of ranks below it may take the fast path
  std::size_t fast_frames_ = 0;
  unsigned easy_polls_ = 0;
  std::uint32_t dead_peers_ = 0;
};

}  // namespace score::pm
