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
  // Reads back in the opposite order, from where the call before it ended, until `most` bytes have
  // been read by all calls.
  void read_back(std::uint64_t most, const GoesOn& goes_on);
  // Reads everything back. What is in memory already costs little.
  void read_all_back(const GoesOn& goes_on);

  // Returns the bytes that were written or read so far by the call in progress.
  [[nodiscard]] std::uint64_t done() const { return static_cast<std::uint64_t>(done_); }

 private:
  struct Piece {
    pid_t pid = 0;
    Region region;
  };

  void look_at(pid_t pid);
  void order_for_reading();
  std::string reclaim(std::uint64_t most, const GoesOn& goes_on);

  Place place_;
  std::vector<Piece> pieces_;
  std::map<std::pair<pid_t, std::uint64_t>, std::size_t> order_;  // [process, address] as written
  Measure measure_;
  double done_ = 0;
  bool is_reading_ = false;    // pieces_ is in the order of reading
  std::size_t next_ = 0;       // piece to read
  std::uint64_t next_at_ = 0;  // its address from which on it is not read yet; 0: its start
};

// Returns the value in bytes of a line of /proc/meminfo, such as "SwapFree:"; 0 if it is missing.
std::uint64_t memory_info(const char* name);

}  // namespace score::park
