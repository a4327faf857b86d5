// What the kernel drops before it reaches a device's socket: everything but frames of a channel for
// certain ranks of certain jobs. It costs a job's neighbours what they send, not the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

// Of UDP sockets the kernel shows filters the header, too.
constexpr std::size_t kUdpHeader = 8;

// Whom frames are for.
struct FrameOwner {
  std::uint32_t rank = 0;
  std::uint64_t key = 0;         // 0: its frames carry tags, there is no key in them
  std::uint32_t generation = 0;  // 0: not looked at
  bool operator==(const FrameOwner&) const = default;
};

constexpr std::size_t kMostFrameOwners = 64;

struct FrameFilter {
  std::size_t offset = 0;  // of the frame in what the kernel shows to filters
  std::uint16_t channel = 0;
  std::span<const FrameOwner> owners;  // at most kMostFrameOwners
  bool is_brief = false;               // does not look at magic, version and length
  std::uint16_t ether_type = 0;        // of the two bytes before the frame; 0: not looked at
};

// Of what shows itself only to who knows the generation or computes the checksum nothing is
// dropped: that is counted above. 0 or a negative errno. Takes the place of the filter before; it
// can still be taken off.
int attach_filter(int fd, const FrameFilter& filter);
// 0 or a negative errno; also 0 if there is none.
int detach_filter(int fd);

}  // namespace score::pm
