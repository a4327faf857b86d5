#pragma once
// Parked records where the memory of a job is. The memory of a job that is frozen for long can be
// written to swap on its nodes; it is then read back before the job runs again.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::gang {

// The numbers go over the wire.
enum class Residence : std::uint8_t {
  InMemory,
  Leaving,    // its nodes were asked to write it to swap
  Parked,     // it is in swap, except what stays
  Returning,  // its nodes were asked to read it back
};

struct Parked {
  struct Part {
    bool has_answered = false;  // to the newest request
    bool is_out = false;
    base::Bytes in_swap{0};
    base::Duration took{0};  // of the newest request
    base::Bytes lent{0};     // of its reservation, what others may have meanwhile
    bool is_open = false;    // any job may have it; otherwise only jobs of queue urgent
  };

  Residence residence = Residence::InMemory;
  base::JobId for_job{0};                 // of queue urgent, which waits for the memory; 0: none
  std::vector<Part> parts;                // [member]; empty: it was not parked in this attempt
  std::string refused;                    // why it cannot be parked, in this attempt
  base::Bytes moved_out{0}, moved_in{0};  // in this attempt, on all its nodes
  base::Duration took{0};                 // in which that was done, on the slowest node each time

  // A job whose memory is not there is in no row.
  [[nodiscard]] bool is_away() const { return residence != Residence::InMemory; }

  [[nodiscard]] base::Bytes in_swap() const {
    base::Bytes sum{0};
    for (const Part& part : parts) sum += part.in_swap;
    return sum;
  }
};

}  // namespace score::gang
