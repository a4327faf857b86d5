// UdpDevice sends PM frames in UDP datagrams. A burst passes the kernel as one packet of up to 64
// KB that is split late or never (UDP_SEGMENT) and arrives joined (UDP_GRO). Where the kernel has
// neither, frames are sent by sendmmsg.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <netinet/in.h>
#include <span>
#include <vector>

namespace score::pm {

class UdpDevice final : public PacketDevice {
 public:
  // Binds to `own` (IPv4 and port; port 0 = any). `frame_bytes` is at most the path's MTU minus 28.
  // Returns null and sets `error` to an errno on failure.
  static std::unique_ptr<UdpDevice> open(const PeerAddress& own, std::size_t frame_bytes,
                                         int& error);
  // Takes ownership of a bound, nonblocking UDP socket.
  UdpDevice(int fd, std::size_t frame_bytes);
  ~UdpDevice() override;

  // Makes the kernel drop frames that are not for this rank of this job. It must not be used on a
  // socket that jobs use in turn. Returns 0 or a negative errno.
  int drop_foreign(std::uint16_t channel, std::uint32_t rank, std::uint64_t key);

  // Disables IP fragmentation. A datagram that is too large for the path is then lost, even if this
  // host knows that it is too large. PathDevice needs this to find the size that passes.
  void drop_oversize();

  // Stops the socket from reporting refusals. An owner that sends only datagrams needs this,
  // because a report of an absent peer would take the place of a datagram to a different peer.
  void ignore_refusals();

  // Returns the address that the socket is bound to.
  PeerAddress own_address() const;

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return fd_; }

  bool reports_refusals() const override { return reports_refusals_; }

  bool prepare_to_sleep() override;

  std::uint32_t dropped() const override;

  std::size_t frame_bytes() const override { return frame_bytes_; }

  std::size_t batch_frames() const override;

  bool wants_joined() const override { return can_join_; }

  // Parses IPv4 and port as in PeerAddress. Returns false if `text` is not "a.b.c.d:port".
  static bool parse(const char* text, PeerAddress& address);

 private:
  bool send_one(const sockaddr_in& to, const FrameOut& frame);
  std::size_t send_joined(const PeerAddress& to, std::span<const FrameOut> frames);
  std::size_t send_separately(const PeerAddress& to, std::span<const FrameOut> frames);
  std::size_t run_length(std::span<const FrameOut> frames) const;
  void take_errors();

  int fd_;
  std::size_t frame_bytes_;
  bool can_join_ = true;
  bool loses_too_large_ = false;
  bool reports_refusals_ = true;
  std::vector<std::byte> buffer_;     // received data
  std::vector<PeerAddress> refused_;  // to be reported by the next receive()
  bool has_error_ = false;            // the socket's error queue may have entries
};

}  // namespace score::pm
