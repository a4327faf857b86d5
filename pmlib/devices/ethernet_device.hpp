// PM frames directly on Ethernet, with an EtherType of their own beside TCP/IP. Received frames lie
// in a ring that the kernel fills and this process reads without a system call, as GigaE PM's
// descriptors; sending is one system call.
//
// Opening the socket needs CAP_NET_RAW, using it does not: a privileged process opens it for one
// interface, channel and rank, locks the filter and passes the descriptor on.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/devices/ethernet_frame.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace score::pm {

struct EthernetPlace {
  const char* interface = nullptr;
  std::uint16_t channel = 0;
  std::uint32_t rank = 0;  // only frames for this rank pass the filter
  std::uint64_t key = 0;   // and only of this job; 0 = frames carry tags, there is no key in them
  std::uint32_t generation = 0;  // and of this incarnation; 0 = not looked at
};

// The receive ring: blocks of whole frames' places.
struct RingShape {
  std::size_t space = 0;  // of a frame
  std::size_t block_bytes = 0;
  std::uint32_t in_block = 0;  // frames
  std::uint32_t frames = 0;    // in all

  // For an interface of this MTU.
  static RingShape of(std::size_t mtu);

  std::size_t bytes() const { return frames / in_block * block_bytes; }

  std::size_t offset(std::uint32_t index) const {
    return index / in_block * block_bytes + index % in_block * space;
  }
};

// Opens and configures the socket; a negative errno on failure. The filter cannot be changed or
// taken off any more.
int open_ethernet_socket(const EthernetPlace& place);

class EthernetDevice final : public PacketDevice {
 public:
  // Takes over a socket of open_ethernet_socket() and maps its ring.
  static std::unique_ptr<EthernetDevice> attach(int fd, int& error);
  ~EthernetDevice() override;
  EthernetDevice(const EthernetDevice&) = delete;
  EthernetDevice& operator=(const EthernetDevice&) = delete;

  PeerAddress own_address() const { return own_; }

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return fd_; }

  // From the interface's MTU.
  std::size_t frame_bytes() const override { return frame_bytes_; }

  // "aa:bb:cc:dd:ee:ff"
  static bool parse(const char* text, PeerAddress& address);

 private:
  explicit EthernetDevice(int fd) : fd_(fd) {}

  int map();
  std::atomic_ref<std::uint32_t> status_of(std::uint32_t place) const;
  bool is_full(std::uint32_t place) const;
  [[gnu::noinline]] bool find_start();
  bool send_short(const PeerAddress& to, const FrameOut& frame);
  [[gnu::noinline]] std::size_t send_many(const PeerAddress& to, std::span<const FrameOut> frames);

  int fd_;
  int interface_ = 0;
  PeerAddress own_;
  std::size_t frame_bytes_ = 0;
  std::byte* ring_ = nullptr;
  RingShape shape_;
  std::uint32_t next_ = 0;
  bool has_start_ = false;   // `next_` is where the kernel puts the next frame
  std::byte* at_ = nullptr;  // place `next_` of the ring
  std::array<std::byte, kEthernetHeader + kShortFrame> short_;  // a frame that goes out
};

}  // namespace score::pm
