// Defines the protocol between node daemon and scored-rings: a Unix SOCK_SEQPACKET connection to
// rings.sock next to the launcher's socket, with messages of fixed length, one per packet. Each
// request is answered by a launcher::StartReply, in order, with the ring as its one descriptor. The
// ring is a raw socket that leads to the one interface that the launcher was given, with the
// receive ring and the filter of pmlib/devices/ethernet_device.hpp. The kernel limits what it may
// send (rings.hpp). An invalid packet ends the connection.
#pragma once

#include "scored/privileged/launcher/protocol.hpp"

#include <cstdint>

namespace score::rings {

inline constexpr std::uint32_t kMagic = 0x47524353;  // "SCRG"
inline constexpr std::uint32_t kVersion = 1;

struct RingRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t attempt = 0;
  // The filter, which is locked before the socket leaves this program, accepts only frames with
  // these values.
  std::uint64_t key = 0;  // of the attempt; 0: its frames carry tags instead
  std::uint32_t rank = 0;
  std::uint32_t channel = 0;
  std::uint32_t reserved[2] = {};  // nodes of earlier versions set the first one to 1 for AF_XDP
};

static_assert(sizeof(RingRequest) == 40);

// Returns PM's generation in the frames of an attempt. The kernel distinguishes attempts on one
// channel by it if their key is not in the frames. It is not 0, and not secret.
constexpr std::uint32_t ring_generation(std::uint64_t attempt) {
  const auto folded = static_cast<std::uint32_t>(attempt ^ attempt >> 32);
  return folded == 0 ? 1 : folded;
}

// Holds the step that failed and the error; 0: no failure.
struct RingFailure {
  int error = 0;
  char step[sizeof(launcher::StartReply::step)] = {};
};

}  // namespace score::rings
