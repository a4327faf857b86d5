// The Ethernet devices share these functions for the header before PM's frame and the end of a
// frame.
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

// A frame up to this size is short: most likely the application waits for it.
constexpr std::size_t kShortFrame = 256;

inline EthernetHeader ethernet_header(const PeerAddress& to, const PeerAddress& from) {
  const std::uint16_t type = htons(kEtherType);
  EthernetHeader header;
  std::memcpy(header.data(), to.bytes.data(), to.bytes.size());
  std::memcpy(header.data() + to.bytes.size(), from.bytes.data(), from.bytes.size());
  std::memcpy(header.data() + 2 * to.bytes.size(), &type, sizeof type);
  return header;
}

// Writes the frame to `at`, behind the Ethernet header, and returns its end.
inline std::byte* put_frame(const FrameOut& frame, std::byte* at) {
  std::memcpy(at, frame.head.data(), frame.head.size());
  at += frame.head.size();
  if (frame.body.empty()) return at;
  std::memcpy(at, frame.body.data(), frame.body.size());
  return at + frame.body.size();
}

// Passes PM's frame in `arrived` to `sink`, if there is one. Ethernet pads short frames to 60
// bytes, so the length is taken from PM's header.
inline void take_frame(std::span<const std::byte> arrived, FrameSink& sink) {
  if (arrived.size() < kEthernetHeader + sizeof(FrameHeader)) return;
  const auto frame = arrived.subspan(kEthernetHeader);
  std::uint16_t payload = 0;
  std::memcpy(&payload, frame.data() + offsetof(FrameHeader, length), sizeof payload);
  sink.on_frame(frame.first(std::min(sizeof(FrameHeader) + payload, frame.size())));
}

}  // namespace score::pm
