// This file is tested by frame_reader_test.cpp.

#include "proto/frames/wire.hpp"

#include "proto/frames/errc.hpp"

#include <bit>
#include <cstring>

namespace score::proto {

static_assert(std::endian::native == std::endian::little,
              "the header is copied as it lies in memory; a big-endian port swaps here");

void encode_header(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out) {
  std::memcpy(out.data(), &header, kHeaderBytes);
}

base::Result<FrameHeader> decode_header(std::span<const std::byte, kHeaderBytes> in) {
  FrameHeader header;
  std::memcpy(&header, in.data(), kHeaderBytes);
  if (header.magic != kMagic) {
    return base::fail(WireErrc::BadMagic, "frame begins with {:#010x}", header.magic);
  }
  if (header.version != kWireVersion) {
    return base::fail(WireErrc::BadVersion, "frame header of version {}, this program speaks {}",
                      header.version, kWireVersion);
  }
  if (header.reserved != 0) {
    return base::fail(WireErrc::BadFrame, "reserved field is {:#x}", header.reserved);
  }
  return header;
}

}  // namespace score::proto
