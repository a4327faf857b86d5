// XdpDevice sends PM frames on Ethernet by AF_XDP: frames lie in memory that the kernel and this
// process share, and one system call sends many of them. The frames on the wire are those of
// EthernetDevice.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/devices/ethernet_frame.hpp"
#include "pmlib/devices/xdp_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace score::pm {

class XdpDevice final : public PacketDevice {
 public:
  // Takes ownership of the parts of an AF_XDP socket. Returns null and sets `error` to an errno on
  // failure.
  static std::unique_ptr<XdpDevice> attach(XdpParts parts, int& error);
  ~XdpDevice() override;
  XdpDevice(const XdpDevice&) = delete;
  XdpDevice& operator=(const XdpDevice&) = delete;

  PeerAddress own_address() const { return parts_.shape.own; }

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return parts_.socket; }

  std::size_t frame_bytes() const override { return parts_.shape.frame_bytes; }

  std::size_t batch_frames() const override { return kBatch; }

 private:
  static constexpr std::size_t kBatch = 32;  // frames that the kernel sends in one call

  explicit XdpDevice(XdpParts parts) : parts_(parts) {}

  int map();
  void push();

  XdpParts parts_;
  XdpRings rings_;
  std::byte* memory_ = nullptr;
  std::uint32_t received_ = 0;  // received frames, as the rings count them: the count wraps
  std::uint32_t sent_ = 0;      // frames written into the ring
  bool is_waiting_ = false;     // the kernel has not taken all frames
};

}  // namespace score::pm
