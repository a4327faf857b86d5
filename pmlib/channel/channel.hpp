// A Channel sends reliable, ordered messages and remote memory operations between the ranks of a
// job over a packet device. All its lasting state lies in the context segment. The object itself
// can be destroyed and made again over the same or a restored segment at any time.
//
// Each part of a channel owns some state: SendQueues, SendWindow, FrameSender and OwedAcks send;
// ReceiveQueue, RemoteMemory, EarlyWrites and PeerMonitor receive. This class checks each arriving
// frame, asks the engine about it and passes it to the part that handles it.
//
// The class is not thread-safe: only one thread may use it at a time. No function blocks. Errors
// are errno values, 0 is success.
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
  // After this many consecutive timeouts a peer counts as dead; 0 uses the context's peer timeout.
  std::uint16_t tries_before_dead = 0;
};

class Channel final : private FrameSink {
 public:
  // `device` and `clock` must outlive the channel.
  Channel(const Segment& segment, PacketDevice& device, JobClock& clock,
          const ChannelOptions& options);

  // Lends memory for a message of `length` <= payload_bytes() to `peer`, to be built in place.
  // Errors: ENOBUFS if nothing is free, so the caller must call progress() and try again; EBUSY if
  // the buffer lent before has not been sent yet.
  int get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer);
  // Sends the message that get_send_buffer() lent. With `more_follows` it may wait for the next
  // message to the same peer, so that both are sent together. The caller calls send_held() if no
  // more follows.
  int send(bool more_follows = false);
  // Does the same for a sender that knows the checksum of the payload, crc32c(0, bytes).
  int send_summed(std::uint32_t sum, bool more_follows);
  void send_held(std::uint32_t peer);
  // Sends one frame that is neither numbered nor acknowledged; the channel keeps no copy. `sum` is
  // crc32c(0, bytes). Returns EAGAIN if the device took nothing.
  int send_datagram(std::uint32_t peer, std::span<const std::byte> bytes, std::uint32_t sum);

  // The queues let the caller return a lent buffer unsent and ask whether a region is in use.
  SendQueues& queues() { return queues_; }

  // Returns the queue of messages that have arrived.
  ReceiveQueue& received() { return received_; }

  RemoteMemory& memory() { return memory_; }

  // Offers arriving messages to `taker` from now on. poll() then does not send the ACKs that it
  // makes due. The owner calls send_due_acks() after it has handled the messages, so that the ACKs
  // ride on its answers.
  void set_consumer(MessageConsumer* taker) { received_.set_consumer(taker); }

  void send_due_acks() {
    if (acks_.is_due()) acks_.send_all();
  }

  // Receives frames, answers them, resends, and sends queued frames. Returns how much was done.
  std::size_t progress();
  // Does the same for a loop that waits for a message. It is cheaper because it checks timers only
  // now and then.
  std::size_t poll();

  // Returns true if progress() must be called later even if nothing arrives, within `microseconds`.
  bool next_deadline(Microseconds& microseconds);
  // Returns true if nothing is queued, unacknowledged, received or pending.
  bool is_quiet() const;

  // Returns a number that changes each time a peer is found dead.
  std::uint32_t dead_peers() const { return dead_peers_; }

  [[gnu::cold]] void declare_dead(std::uint32_t peer);
  // Sets the alias of a channel whose processes do not share one numbering of ranks. Nothing may
  // have been sent to `peer` before. It is not part of a saved context.
  void set_alias(std::uint32_t peer, const Alias& alias);

  // Returns the owed ACKs; send_all() does not wait for a frame to ride on.
  OwedAcks& acks() { return acks_; }

  std::uint32_t payload_bytes() const { return state_.payload_bytes(); }

  const Segment& segment() const { return state_.segment; }

  // Returns how many messages took the fast path since this object was made.
  std::size_t fast_frames() const { return fast_frames_; }

 private:
  // Passes a descriptor to the send window, on the slow path.
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
  PeerMonitor watch_;
  PacketDevice& device_;
  std::uint16_t tries_before_dead_;
  bool may_use_fast_path_;
  std::uint32_t fast_sources_;  // messages of ranks below it may take the fast path
  std::size_t fast_frames_ = 0;
  unsigned easy_polls_ = 0;
  std::uint32_t dead_peers_ = 0;
};

}  // namespace score::pm
