// This filter makes the kernel drop packets before they reach a device's socket: everything but
// frames of a channel for certain ranks of certain jobs. So unwanted packets cost their senders
// time, and not the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

// For UDP sockets the kernel passes this header to filters, too.
constexpr std::size_t kUdpHeader = 8;

// A FrameOwner is the receiver of frames.
struct FrameOwner {
  std::uint32_t rank = 0;
  std::uint64_t key = 0;         // 0: its frames carry tags and no key
  std::uint32_t generation = 0;  // 0: not checked
  bool operator==(const FrameOwner&) const = default;
};

constexpr std::size_t kMostFrameOwners = 64;

struct FrameFilter {
  std::size_t offset = 0;  // of the frame in what the kernel shows to filters
  std::uint16_t channel = 0;
  std::span<const FrameOwner> owners;  // at most kMostFrameOwners
  bool is_brief = false;               // does not check magic, version and length
  std::uint16_t ether_type = 0;        // required in the two bytes before the frame; 0: not checked
};

// Attaches a filter in place of the previous one; it can be detached later. Returns 0 or a negative
// errno. The filter never drops a frame that only the generation or the checksum would reveal as
// wrong, because the device above counts those.
int attach_filter(int fd, const FrameFilter& filter);
// Returns 0, even if there is no filter, or a negative errno.
int detach_filter(int fd);

}  // namespace score::pm
