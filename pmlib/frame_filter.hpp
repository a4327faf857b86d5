// What the kernel drops before it reaches a device's socket: everything but frames of one job, rank
// and channel. It costs a job's neighbours what they send, not the job.
#pragma once

#include <cstddef>
#include <cstdint>

namespace score::pm {

struct FrameFilter {
  std::size_t offset = 0;  // of the frame in what the kernel shows to filters
  std::uint16_t channel = 0;
  std::uint32_t rank = 0;
  std::uint64_t key = 0;  // 0: frames carry tags, there is no key in them
  bool is_brief = false;  // does not look at magic, version and length
};

// Of what shows itself only to who knows the generation or computes the checksum nothing is
// dropped: that is counted above. 0 or a negative errno. The filter can still be taken off.
int attach_filter(int fd, const FrameFilter& filter);

}  // namespace score::pm
