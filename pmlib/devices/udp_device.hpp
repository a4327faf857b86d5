// PM frames in UDP datagrams. Bursts go through the kernel as one packet of up to 64 KB that is cut
// late or never (UDP_SEGMENT) and arrives joined (UDP_GRO); where the kernel has neither, frames go
// by sendmmsg.
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
  // Binds to `own` (IPv4 and port; port 0 = any). `frame_bytes` is at most what fits the path's MTU
  // less 28. Null and an errno in `error` on failure.
  static std::unique_ptr<UdpDevice> open(const PeerAddress& own, std::size_t frame_bytes,
                                         int& error);
  // Takes over a bound, nonblocking UDP socket.
  UdpDevice(int fd, std::size_t frame_bytes);
  ~UdpDevice() override;

  // From now on the kernel drops what is not for this rank of this job: not on a socket that jobs
  // have in turn. 0 or a negative errno.
  int drop_foreign(std::uint16_t channel, std::uint32_t rank, std::uint64_t key);

  // From now on datagrams are never cut into IP fragments; one that is too large for the path is
  // lost, also where this host knows it: for who finds the size that passes (PathDevice).
  void lose_what_is_too_large();

  // From now on the socket does not report refusals: for who sends only datagrams, and would learn
  // of a peer that is not there instead of sending to another.
  void ignore_refusals();

  // The address the socket is bound to.
  PeerAddress own_address() const;
  // Bytes the socket holds for a slow reader.
  std::size_t receive_buffer_bytes() const;

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return fd_; }

  bool tells_refusals() const override { return tells_refusals_; }

  bool prepare_to_sleep() override;

  std::uint32_t dropped() const override;

  std::size_t frame_bytes() const override { return frame_bytes_; }

  std::size_t batch_frames() const override;

  bool wants_joined() const override { return can_join_; }

  // IPv4 and port, as in PeerAddress. False if `text` is not "a.b.c.d:port".
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
  bool tells_refusals_ = true;
  std::vector<std::byte> buffer_;     // what arrived
  std::vector<PeerAddress> refused_;  // to be reported by the next receive()
  bool has_error_ = false;            // the socket's error queue may hold something
};

}  // namespace score::pm
