// Defines the frame header, the same for every protocol of the project (docs/reference/wire.md).
// All numbers are little-endian. A frame is the header and `length` bytes of one protobuf message,
// whose type is in the header.
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace score::proto {

inline constexpr std::uint32_t kMagic = 0x44524353;  // "SCRD"
inline constexpr std::uint16_t kWireVersion = 1;     // of header and negotiation, not of messages

struct FrameHeader {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kWireVersion;
  std::uint16_t type = 0;
  std::uint32_t length = 0;    // payload bytes
  std::uint32_t reserved = 0;  // 0
};

inline constexpr std::size_t kHeaderBytes = 16;
static_assert(sizeof(FrameHeader) == kHeaderBytes, "the header is read and written as one block");

void encode_header(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out);
// Decodes a header without checking the type. Errors: BadMagic, BadVersion, BadFrame (reserved is
// not 0).
base::Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> in);

}  // namespace score::proto
