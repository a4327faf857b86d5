// Runs a process that sends frames from outside the job: random bytes, frames of a different job,
// of an old generation, frames with a false length, frames with a wrong checksum.
#pragma once

#include "bench/pm/harness.hpp"

#include <atomic>
#include <cstdint>
#include <sys/types.h>

namespace score::bench {

struct GarbageOptions {
  bool is_ethernet = false;
  // Sends to the same node, but to a port or type without a reader, to measure the cost of sending
  // alone.
  bool without_reader = false;
  std::uint16_t port = 4000;  // UDP: of rank 1
  std::uint64_t key = 0;      // the job's
  std::uint32_t generation = 1;
  unsigned rate = 1000;  // frames per second
};

class Garbage {
 public:
  // Starts to send from the node of side 0 to that of side 1.
  Garbage(const TwoEnds& ends, const GarbageOptions& options);
  // Ends the process.
  ~Garbage();
  Garbage(const Garbage&) = delete;
  Garbage& operator=(const Garbage&) = delete;

  // Returns the frames per second so far.
  double rate() const;

 private:
  std::atomic<std::uint64_t>* sent_;  // shared with the child process
  double start_;
  pid_t child_;
};

}  // namespace score::bench
