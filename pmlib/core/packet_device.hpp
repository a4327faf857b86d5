// PacketDevice is the network below the go-back-N: any frame may be lost, duplicated, reordered or
// damaged. UDP, Ethernet and libfabric devices implement it, and the simulated network of the
// tests.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

// A FrameOut is a frame to be sent, gathered from its header and a piece of memory. `body` may be
// empty.
struct FrameOut {
  std::span<const std::byte> head;
  std::span<const std::byte> body;

  std::size_t size() const { return head.size() + body.size(); }
};

// A FrameSink takes the frames that a device received.
class FrameSink {
 public:
  // `frame` is valid only during the call.
  virtual void on_frame(std::span<const std::byte> frame) = 0;

  // The node of this address refuses frames because no process has the port open.
  virtual void on_refused(const PeerAddress&) {}

 protected:
  ~FrameSink() = default;
};

constexpr std::size_t kMaxBatch = 64;  // frames given to a device at once

class PacketDevice {
 public:
  virtual ~PacketDevice() = default;

  // Sends frames in order to one peer; none may be larger than frame_bytes(). Never blocks. Returns
  // how many frames the network took; the caller may offer the rest again later.
  virtual std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) = 0;

  // Gives at most about `limit` received frames to `sink`. Never blocks. Returns the
  // number of frames.
  virtual std::size_t receive(FrameSink& sink, std::size_t limit) = 0;

  // Returns a descriptor that polls readable when receive() would find a frame.
  virtual int poll_fd() const = 0;

  // The caller must call this before it sleeps on poll_fd(). If it returns false, the caller must
  // call receive() instead of sleeping.
  virtual bool prepare_to_sleep() { return true; }

  // Returns true if a frame for an ended process causes FrameSink::on_refused().
  virtual bool reports_refusals() const { return false; }

  // Returns how many frames for this device the kernel has dropped: those of other jobs, and those
  // for which it had no space.
  virtual std::uint32_t dropped() const { return 0; }

  // Returns how many full frames are cheapest to send at once, 1 .. kMaxBatch.
  virtual std::size_t batch_frames() const { return 16; }

  // Returns true if a batch is cheapest to send when its frames are contiguous in memory.
  virtual bool wants_joined() const { return false; }

  // Returns the largest size of a frame, with header and payload.
  virtual std::size_t frame_bytes() const = 0;
};

}  // namespace score::pm
