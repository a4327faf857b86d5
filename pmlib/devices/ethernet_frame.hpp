// What the Ethernet devices have in common: the header before PM's frame, and how a frame ends.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/wire/frame.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace score::pm {

constexpr std::size_t kEthernetHeader = 14;
using EthernetHeader = std::array<std::byte, kEthernetHeader>;

// Up to here it is short: most likely what the application waits for.
constexpr std::size_t kShortFrame = 256;

inline EthernetHeader ethernet_header(const PeerAddress& to, const PeerAddress& from) {
  const std::uint16_t type = htons(kEtherType);
  EthernetHeader header;
  std::memcpy(header.data(), to.bytes.data(), to.bytes.size());
  std::memcpy(header.data() + to.bytes.size(), from.bytes.data(), from.bytes.size());
  std::memcpy(header.data() + 2 * to.bytes.size(), &type, sizeof type);
  return header;
}

// Writes the frame to `at`, behind a header that says whom it is for; returns its end. The rest of
// the header may have been there before.
inline std::byte* put_frame(const FrameOut& frame, std::byte* at) {
  std::memcpy(at, frame.head.data(), frame.head.size());
  at += frame.head.size();
  if (frame.body.empty()) return at;
  std::memcpy(at, frame.body.data(), frame.body.size());
  return at + frame.body.size();
}

// Hands over PM's frame in what arrived, if there is one. Short frames are padded to 60 bytes on
// the wire: PM's header says how long they are.
inline void take_frame(std::span<const std::byte> arrived, FrameSink& sink) {
  if (arrived.size() < kEthernetHeader + sizeof(FrameHeader)) return;
  const auto frame = arrived.subspan(kEthernetHeader);
  std::uint16_t payload = 0;
  std::memcpy(&payload, frame.data() + offsetof(FrameHeader, length), sizeof payload);
  sink.on_frame(frame.first(std::min(sizeof(FrameHeader) + payload, frame.size())));
}

}  // namespace score::pm
