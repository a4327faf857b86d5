// Writes the memory of frozen processes to swap, and reads it back.
#pragma once

#include "scored/privileged/park/regions.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::park {

// Holds descriptors of the attempt's cgroup. They belong to the caller.
struct Place {
  int directory = -1;  // of its tasks, cgroup2
  int reclaim = -1;    // memory.reclaim, open for writing; -1: there is none
};

struct Measure {
  std::uint64_t pss = 0;        // memory of all processes
  std::uint64_t may_leave = 0;  // of it, what could go to swap
  std::uint64_t swap = 0;
};

// Must return false if the work shall end, which it does after the piece in progress.
using GoesOn = std::function<bool()>;

// Returns the monotonic clock.
[[nodiscard]] std::uint64_t now_ns();

class Paging {
 public:
  explicit Paging(Place place) : place_(place) {}

  // Looks at the processes. Returns false if none could be read.
  bool look();

  [[nodiscard]] const Measure& measure() const { return measure_; }

  // Writes to swap, the least used regions first, up to `most` bytes. The processes must not run.
  // Returns a fault as one line; empty if there is none, and also if it was ended.
  std::string write_out(std::uint64_t most, std::uint64_t least_rate, const GoesOn& goes_on);
  // Reads everything back, in the opposite order. Returns the bytes.
  std::uint64_t read_back(const GoesOn& goes_on);

 private:
  struct Piece {
    pid_t pid = 0;
    Region region;
  };

  void look_at(pid_t pid);
  std::string reclaim(std::uint64_t most, const GoesOn& goes_on);

  Place place_;
  std::vector<Piece> pieces_;
  std::map<std::pair<pid_t, std::uint64_t>, std::size_t> order_;  // [process, address] as written
  Measure measure_;
};

// Returns the value in bytes of a line of /proc/meminfo, such as "SwapFree:"; 0 if it is missing.
std::uint64_t memory_info(const char* name);

}  // namespace score::park
