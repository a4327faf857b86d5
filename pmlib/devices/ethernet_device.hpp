// EthernetDevice sends PM frames directly on Ethernet, with an EtherType of their own in parallel
// to TCP/IP. The kernel writes received frames into a ring, which this process reads without a
// system call, like GigaE PM's descriptors. Sending is one system call.
//
// Opening the socket needs CAP_NET_RAW, using it does not. A privileged process opens it for one
// interface, channel and rank, locks the filter and passes the descriptor on.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace score::pm {

constexpr std::size_t kEthernetHeader = 14;

// A frame up to this size is short: most likely the application waits for it.
constexpr std::size_t kShortFrame = 256;

struct EthernetPlace {
  const char* interface = nullptr;
  std::uint16_t channel = 0;
  std::uint32_t rank = 0;        // only frames for this rank pass the filter
  std::uint64_t key = 0;         // and only of this job; 0 = frames carry tags and no key
  std::uint32_t generation = 0;  // and of this incarnation; 0 = not checked
};

// RingShape describes the receive ring: blocks that each hold a number of whole frames.
struct RingShape {
  std::size_t space = 0;  // bytes per frame
  std::size_t block_bytes = 0;
  std::uint32_t in_block = 0;  // frames
  std::uint32_t frames = 0;    // in total

  // Returns the shape for an interface of this MTU; a block consists of whole pages.
  static RingShape of(std::size_t mtu, std::size_t page_bytes);

  std::size_t bytes() const { return frames / in_block * block_bytes; }

  std::size_t offset(std::uint32_t index) const {
    return index / in_block * block_bytes + index % in_block * space;
  }
};

// Opens and configures the socket; returns a negative errno on failure. The filter can no longer be
// changed or detached.
int open_ethernet_socket(const EthernetPlace& place);

class EthernetDevice final : public PacketDevice {
 public:
  // Takes ownership of a socket of open_ethernet_socket() and maps its ring.
  static std::unique_ptr<EthernetDevice> attach(int fd, int& error);
  ~EthernetDevice() override;
  EthernetDevice(const EthernetDevice&) = delete;
  EthernetDevice& operator=(const EthernetDevice&) = delete;

  PeerAddress own_address() const { return own_; }

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return fd_; }

  // Returns the size that follows from the interface's MTU.
  std::size_t frame_bytes() const override { return frame_bytes_; }

  // Parses an address of the form "aa:bb:cc:dd:ee:ff".
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
  bool has_start_ = false;   // `next_` is where the kernel writes the next frame
  std::byte* at_ = nullptr;  // place `next_` of the ring
  std::array<std::byte, kEthernetHeader + kShortFrame> short_;  // a short frame to be sent
};

}  // namespace score::pm
