// The network as the go-back-N sees it: any frame may be lost, doubled, overtaken or damaged. UDP,
// Ethernet and libfabric devices implement it, and the simulated network of the tests.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

// A frame to be sent, gathered from its header and a piece of memory. `body` may be empty.
struct FrameOut {
  std::span<const std::byte> head;
  std::span<const std::byte> body;

  std::size_t size() const { return head.size() + body.size(); }
};

// Takes the frames that a device received.
class FrameSink {
 public:
  // `frame` is valid during the call.
  virtual void on_frame(std::span<const std::byte> frame) = 0;

  // The node of this address refuses frames: no process has the port open.
  virtual void on_refused(const PeerAddress&) {}

 protected:
  ~FrameSink() = default;
};

constexpr std::size_t kMaxBatch = 64;  // frames given to a device at once

class PacketDevice {
 public:
  virtual ~PacketDevice() = default;

  // Sends frames in order to one peer, none larger than frame_bytes(). Never blocks. Returns how
  // many the network took; the rest was not sent and may be offered again later.
  virtual std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) = 0;

  // Hands at most about `limit` frames that have arrived to `sink`. Never blocks. Returns how many.
  virtual std::size_t receive(FrameSink& sink, std::size_t limit) = 0;

  // A descriptor that polls readable when receive() would find something.
  virtual int poll_fd() const = 0;

  // Called before sleeping on poll_fd(). False: do not sleep, receive() first.
  virtual bool prepare_to_sleep() { return true; }

  // Whether frames for a process that has ended come back as FrameSink::on_refused().
  virtual bool tells_refusals() const { return false; }

  // Frames that the kernel has dropped on their way to this device: of other jobs, or for lack of
  // room.
  virtual std::uint32_t dropped() const { return 0; }

  // As many full frames as are cheapest to send at once, 1 .. kMaxBatch.
  virtual std::size_t batch_frames() const { return 16; }

  // Whether a batch goes cheapest if its frames follow each other in memory.
  virtual bool wants_joined() const { return false; }

  // Header and payload of a frame at most.
  virtual std::size_t frame_bytes() const = 0;
};

}  // namespace score::pm
