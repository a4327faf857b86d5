// A channel over a packet device: reliable, ordered messages and remote memory between the ranks
// of a job. All its lasting state lies in the context segment; the object itself can be thrown
// away and made anew over the same or a restored segment at any time.
//
// Not thread-safe: one thread at a time. Nothing blocks. Errors are errno values, 0 is success.
#pragma once

#include "pmlib/channel/early_frames.hpp"
#include "pmlib/core/messages.hpp"
#include "pmlib/core/operations.hpp"
#include "pmlib/core/packet_device.hpp"
#include "pmlib/core/segment.hpp"
#include "pmlib/wire/frame_fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace score::pm {

struct ChannelOptions {
  EngineLimits limits;            // `window` is taken from the segment
  Microseconds ack_delay = 100;   // an ACK waits this long for a frame to ride on
  std::uint8_t ack_soon = 16;     // ... or until so many messages and no more have come
  std::uint8_t ack_at_most = 88;  // ... or until so many frames, at most half a window
  bool may_use_fast_path = true;  // take the short way where there is one
  // Time-outs in a row before a peer counts as dead; 0: as the context's patience says.
  std::uint16_t tries_before_dead = 0;
};

// How a peer knows this endpoint, where processes do not share one numbering: by its own key, and
// by the number it has given to this endpoint. Each is number 0 to itself.
struct Alias {
  std::uint64_t key = 0;
  std::uint32_t source = 0;
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
  // go out together; send_held() says that no more comes.
  int send(bool more_follows = false);
  void send_held(std::uint32_t peer);
  // Gives the buffer back unsent. Harmless without one.
  void cancel_send();

  bool is_building() const { return building_ != kNoIndex; }

  // The oldest message not received yet. Several may be held; each takes a buffer until released.
  bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);

  // Writes `length` bytes at `offset` of own region `local` into `remote`'s memory. The memory must
  // stay unchanged until the operation is done. ENOBUFS as above.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  // Reads `length` bytes of `remote` into own memory.
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);
  // Announces own memory as one large message; done when the receiver has fetched it.
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  // Ends an operation of `peer` with `error`: an announcement that was fetched. ENOBUFS as above;
  // the announcement must not stay unreleased until it works.
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);

  // See Operations::test().
  int test(OperationId op) { return operations_.test(op); }

  // Takes in frames, answers them, resends, sends what waits. Returns how much happened.
  std::size_t progress();
  // The same for a loop that waits for a message: cheaper, looks at timers only now and then.
  std::size_t poll();

  // True if calling progress() later is needed although nothing arrives; then in `microseconds`.
  bool next_deadline(Microseconds& microseconds);
  // Nothing queued, sent and unacknowledged, received or under way.
  bool is_quiet() const;

  bool is_dead(std::uint32_t peer) const { return segment_.peer(peer).dead != 0; }

  bool has_dead_peer() const { return dead_peers_ != 0; }

  // Differs from before when a peer was found dead since.
  std::uint32_t dead_peers() const { return dead_peers_; }

  [[gnu::cold]] void declare_dead(std::uint32_t peer);
  // For channels without common ranks: nothing may be sent to `peer` before. Not part of a saved
  // context.
  void set_alias(std::uint32_t peer, const Alias& alias);
  // Sends the ACKs that are owed without waiting for something to ride on.
  [[gnu::noinline]] void flush_acks();

  std::uint32_t payload_bytes() const { return segment_.geometry().payload_bytes; }

  const Segment& segment() const { return segment_; }

  // Frames that were taken the short way since this object was made.
  std::size_t fast_frames() const { return fast_frames_; }

  // True while a queued transfer reads own region `region`.
  bool is_region_in_use(std::uint32_t region) const;

 private:
  using E = Engine<>;

  // --- sending (channel_send.cpp)
  std::uint16_t take_descriptor(std::uint32_t left);
  void free_descriptor(std::uint16_t index);
  std::uint16_t take_send_buffer();
  void free_send_buffer(std::uint16_t buffer);
  void enqueue(std::uint32_t peer, std::uint16_t descriptor);
  [[gnu::noinline]] void append_to_queue(std::uint32_t peer, std::uint16_t descriptor);
  void link_frames(PeerState& peer, std::uint16_t descriptor, std::uint32_t frames);
  [[gnu::noinline]] void transmit(std::uint32_t peer);
  bool should_wait_for_window(const PeerState& peer, std::size_t count) const;
  bool ends_window(const PeerState& peer, std::size_t count) const;
  [[gnu::noinline]] std::size_t transmit_batch(PeerState& peer, std::uint32_t rank,
                                               std::span<const std::uint32_t> numbers);
  void fill_frame(FrameHeader& h, const SendDescriptor& d, std::size_t place);
  void fill_write(FrameHeader& h, const SendDescriptor& d, std::size_t place);
  std::byte* next_joined(std::size_t bytes);
  void send_control(std::uint32_t rank, FrameKind kind, const Control<std::uint32_t>& control);
  [[gnu::noinline]] void release_acknowledged(std::uint32_t rank);
  static bool is_postponed(const SendDescriptor& d);
  void ask_again(std::uint32_t rank, std::uint16_t index);
  FrameHeader header_for(std::uint32_t rank, FrameKind kind) const;
  void seal_header(FrameHeader& h) const;
  [[gnu::noinline]] void mark_ready(std::uint32_t rank);
  std::uint32_t frames_for(FrameKind kind, std::uint32_t length) const;

  // --- the short way of a message (channel_plain.cpp)
  bool is_plain(const std::byte* frame, std::size_t length) const;
  bool take_plain(std::span<const std::byte> frame);
  void release_all(std::uint32_t rank);
  bool send_plain(std::uint32_t rank, std::uint16_t index);

  bool has_troubles() const { return !early_.is_empty() || !refused_since_.empty(); }

  // --- receiving (channel_receive.cpp)
  void on_frame(std::span<const std::byte> frame) override;
  [[gnu::noinline]] void on_any_frame(std::span<const std::byte> frame);
  void on_refused(const PeerAddress& address) override;
  [[gnu::cold]] void count_drop(FrameVerdict verdict);
  void on_sequenced(const FrameHeader& h, std::span<const std::byte> payload);
  void on_control(const FrameHeader& h, std::span<const std::byte> payload);
  [[gnu::cold]] void on_deny(PeerState& peer, const FrameHeader& h);
  bool deny_if_due(const FrameHeader& h, std::span<const std::byte> payload);
  bool can_answer(FrameKind kind) const;
  bool needs_buffer(FrameKind kind) const;
  bool is_allowed(const FrameHeader& h, std::span<const std::byte> payload) const;
  void store(const FrameHeader& h, std::span<const std::byte> payload);
  void store_in_buffer(const FrameHeader& h, std::span<const std::byte> payload);
  void store_write(std::uint32_t source, std::span<const std::byte> payload);
  void owe_ack(const FrameHeader& h, bool at_once);
  [[gnu::noinline]] void invite_refused();
  std::size_t after_frames();
  void refresh_now();
  [[gnu::noinline]] void run_timers();
  [[gnu::cold]] void ask_for_refusals();
  [[gnu::noinline]] void serve_requests();
  bool serve_request(std::uint16_t buffer);
  std::uint16_t take_receive_buffer(std::uint32_t source, FrameKind kind, std::size_t length);
  void append(FifoList& list, std::uint16_t buffer);
  std::uint16_t pop(FifoList& list);
  void free_receive_buffer(std::uint16_t buffer);

  // --- losses within writes (channel_early.cpp)
  void on_early(const FrameHeader& h, std::span<const std::byte> payload, bool is_new);
  bool may_store_early(const FrameHeader& h, std::span<const std::byte> payload) const;
  void count_held(std::uint32_t source);
  Microseconds ask_again_after(std::uint32_t rank) const;
  [[gnu::noinline]] void tell_gaps();
  void send_lose(const EarlyFrames::Gap& gap);
  void on_missing(const FrameHeader& h, std::span<const std::byte> bits);

  // --- remote memory (channel_rma.cpp)
  bool covers(std::uint32_t region, std::uint32_t nonce, std::uint64_t offset,
              std::uint64_t length) const;
  bool covers_own(std::uint32_t region, std::uint64_t offset, std::uint64_t length) const;
  std::byte* memory_of(std::uint32_t region, std::uint64_t offset) const;
  int started(OperationId& op, int error);
  int enqueue_note(std::uint32_t peer, FrameKind kind, std::span<const std::byte> bytes,
                   std::uint16_t op);
  int check_peer(std::uint32_t peer) const;

  Segment segment_;
  PacketDevice& device_;
  JobClock& clock_;
  ChannelOptions options_;
  Operations operations_;
  E engine_;
  FrameIdentity identity_;
  std::vector<Alias> aliases_;  // by peer; empty: ranks are common
  PeerSet armed_, ack_owed_, ready_, refused_;
  EarlyFrames early_;
  std::size_t batch_frames_;
  std::uint32_t reserved_;  // descriptors kept for what peers wait for
  std::uint32_t dead_peers_ = 0;
  std::uint32_t seen_resumes_ = 0;
  bool may_use_fast_path_;
  std::uint32_t plain_sources_;  // ranks below it may send what goes the short way
  std::uint8_t ack_plain_;       // frames not yet acknowledged that make nothing due
  std::size_t fast_frames_ = 0;  // so far
  bool ack_soon_ = false;        // once nothing more arrives
  bool ack_at_once_ = false;
  Microseconds now_ = 0;  // as of the last call that needed it
  bool is_now_fresh_ = false;
  unsigned easy_polls_ = 0;
  Microseconds ack_deadline_ = 0;
  Microseconds last_timer_run_ = 0;
  std::uint64_t jitter_state_ = 1;

  // Who was heard of since this object was made, and since when whose node has refused frames.
  std::vector<std::uint8_t> heard_;
  bool has_heard_ = false;
  bool asks_ = false;  // see ask_for_refusals()
  std::map<std::uint32_t, Microseconds> refused_since_;
  Microseconds last_asked_ = 0;
  std::uint32_t next_asked_ = 0;
  std::uint64_t frames_when_asked_ = 0;

  // The message being built.
  std::uint32_t building_for_ = 0;
  std::uint16_t building_ = kNoIndex;  // its descriptor

  // Scratch for one batch: header and RmaHeader of each frame, or its frames one behind the other.
  struct alignas(8) Scratch {
    std::array<std::byte, sizeof(FrameHeader) + sizeof(RmaHeader)> bytes;
  };

  std::array<Scratch, kMaxBatch> scratch_;
  std::vector<std::byte> joined_;
  std::size_t joined_bytes_ = 0;
  bool is_joining_ = false;
  std::array<FrameOut, kMaxBatch> batch_;
};

}  // namespace score::pm
