// FrameSender makes frames and passes them to the device. It owns how frames name this endpoint,
// how a frame is sealed, and the memory of a batch of frames until the device has taken it.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/sending/channel_state.hpp"
#include "pmlib/wire/frame_fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace score::pm {

// An Alias is how a peer knows this endpoint where processes do not share one numbering: by its own
// key, and by the number that it has given to this endpoint. Each process is number 0 to itself.
struct Alias {
  std::uint64_t key = 0;
  std::uint32_t source = 0;
};

class FrameSender {
 public:
  // Both arguments must outlive the object.
  FrameSender(const ChannelState& state, PacketDevice& device);

  const FrameIdentity& identity() const { return identity_; }

  // Returns the most frames of a batch.
  std::size_t batch_frames() const { return batch_frames_; }

  void set_alias(std::uint32_t peer, const Alias& alias);

  // Reads the identity of the context again, which a restore of the process may have changed.
  void read_identity();

  void send_control(std::uint32_t rank, const Control<std::uint32_t>& control);
  void send_deny(std::uint32_t rank, std::uint32_t number, bool is_postponed);
  // Sends a LOSE with a bit for each of `bit_count` numbers behind the last stored one.
  void send_lose(std::uint32_t rank, std::span<const std::byte> bits, std::uint16_t bit_count);
  // `sum` is crc32c(0, payload). Returns false if the device took nothing.
  bool send_datagram(std::uint32_t rank, std::span<const std::byte> payload, std::uint32_t sum);

  // Offers the frames of `numbers`, which increase, to the device; all are in the peer's send
  // queue. The last frame requests its ACK at once if `asks` is true. Returns how many the device
  // took.
  [[gnu::noinline]] std::size_t send_frames(std::uint32_t rank,
                                            std::span<const std::uint32_t> numbers, bool asks);
  // Sends the only number of a message on the fast path. Returns false if the device took nothing.
  bool send_fast(std::uint32_t rank, const SendDescriptor& d);

 private:
  FrameHeader header_for(std::uint32_t rank, FrameKind kind) const;
  bool send_alone(std::uint32_t rank, FrameHeader& h, std::span<const std::byte> payload,
                  std::uint32_t sum);
  void fill_frame(FrameHeader& h, const SendDescriptor& d, std::size_t place);
  void fill_write(FrameHeader& h, const SendDescriptor& d, std::size_t place);
  void fill_part(FrameHeader& h, const SendDescriptor& d, std::size_t place);
  // Makes a frame with the payload `lead` and then `body`, in place `place` of the batch.
  template <class... Words>
  void fill_gathered(FrameHeader& h, std::span<const std::byte> body, std::size_t place,
                     Words... lead);
  std::byte* next_joined(std::size_t bytes);

  const ChannelState& state_;
  PacketDevice& device_;
  FrameIdentity identity_;
  std::vector<Alias> aliases_;  // by peer; empty: ranks are common
  std::size_t batch_frames_;

  // A Scratch is the header and RmaHeader of one frame of a batch. Contiguous frames lie in
  // joined_.
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
