// A process that sends frames which are none of the job's: random bytes, frames of another job, of
// an old generation, frames that lie about their length, frames with a wrong checksum.
#pragma once

#include "tests/bench/pm/harness.hpp"

#include <atomic>
#include <sys/types.h>

namespace score::bench {

enum class GarbageTo {
  Rank,    // rank 1
  Nobody,  // the same node, but a port or type that nobody reads: what the sending alone costs
};

class Garbage {
 public:
  // Starts to send about `rate` frames a second from the node of side 0 to that of side 1.
  Garbage(const TwoEnds& ends, bool is_ethernet, GarbageTo to, unsigned rate);
  // Ends it.
  ~Garbage();
  Garbage(const Garbage&) = delete;
  Garbage& operator=(const Garbage&) = delete;

  // Frames a second so far.
  double rate() const;

 private:
  std::atomic<std::uint64_t>* sent_;  // shared with the process
  double start_;
  pid_t child_;
};

}  // namespace score::bench
