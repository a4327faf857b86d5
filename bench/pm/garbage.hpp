// A process that sends frames which are none of the job's: random bytes, frames of another job, of
// an old generation, frames that lie about their length, frames with a wrong checksum.
#pragma once

#include "bench/pm/harness.hpp"

#include <atomic>
#include <cstdint>
#include <sys/types.h>

namespace score::bench {

struct GarbageOptions {
  bool is_ethernet = false;
  // Send to the same node, but to a port or type without a reader: the cost of sending alone.
  bool to_nobody = false;
  std::uint16_t port = 4000;  // UDP: of rank 1
  std::uint64_t key = 0;      // of the job
  std::uint32_t generation = 1;
  unsigned rate = 1000;  // frames a second
};

class Garbage {
 public:
  // Starts to send from the node of side 0 to that of side 1.
  Garbage(const TwoEnds& ends, const GarbageOptions& options);
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
