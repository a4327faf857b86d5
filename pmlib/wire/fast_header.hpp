// These functions read single words of a frame's header for the fast paths: a word that is compared
// or written in one piece needs no FrameHeader on the stack.
#pragma once

#include "pmlib/wire/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace score::pm {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Returns the first eight bytes of the header of a frame without flags.
constexpr std::uint64_t first_word(std::uint16_t channel, std::size_t length,
                                   FrameKind kind = FrameKind::Message) {
  const std::uint32_t kinds =
      kFrameMagic | kFrameVersion << 8 | static_cast<std::uint32_t>(kind) << 16;
  return words_of(kinds, channel | static_cast<std::uint32_t>(length) << 16);
}

// Returns the same as SequencedFrame::sequence().
inline std::uint32_t sequence_of(const std::byte* frame) {
  return load<std::uint32_t>(frame + offsetof(FrameHeader, number));
}

// Returns the same as SequencedFrame::stored().
inline std::uint32_t stored_of(const std::byte* frame) {
  return load<std::uint32_t>(frame + offsetof(FrameHeader, word));
}

}  // namespace score::pm
