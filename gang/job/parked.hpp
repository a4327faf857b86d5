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
    base::Duration took{0};          // of the newest request
    base::Bytes lent{0};             // of its reservation, what others may have meanwhile
    bool is_open = false;            // any job may have it; otherwise only jobs of queue urgent
    base::Bytes usual{0}, stays{0};  // of the newest page-out: what left, and what did not
  };

  Residence residence = Residence::InMemory;
  base::JobId for_job{0};                 // for which the memory was freed; 0: none
  std::vector<Part> parts;                // [member]; empty: it was not parked in this attempt
  std::string refused;                    // why it cannot be parked, in this attempt
  base::Bytes moved_out{0}, moved_in{0};  // in this attempt, on all its nodes
  base::Duration took{0};                 // in which that was done, on the slowest node each time
  base::Duration away{0};                 // without its memory, before it last left
  std::string short_node;                 // parked because this node is short of memory; "": not

  // These describe its turns in memory; see gang/lifecycle/memory_turns.hpp.
  base::TimePoint left{};           // the memory has been away since then
  base::TimePoint began{};          // the memory has been there again since then; epoch: always
  std::vector<base::JobId> awaits;  // jobs that leave for it, now or at `due`
  base::TimePoint due{};            // valid if `awaits` is not empty

  // Forgets the answers to the request before, but not what was measured.
  void expect_answers(std::size_t members) {
    parts.resize(members);
    for (Part& part : parts) {
      Part next;
      next.usual = part.usual;
      next.stays = part.stays;
      part = next;
    }
  }

  // A job whose memory is not there is in no row.
  [[nodiscard]] bool is_away() const { return residence != Residence::InMemory; }

  // Returns for how long the job has been without its memory in this attempt.
  [[nodiscard]] base::Duration time_away(base::TimePoint now) const {
    return is_away() ? away + (now - left) : away;
  }

  // The memory is there again, or the attempt has ended.
  void end_absence(base::TimePoint now) {
    away = time_away(now);
    residence = Residence::InMemory;
  }

  [[nodiscard]] base::Bytes in_swap() const {
    base::Bytes sum{0};
    for (const Part& part : parts) sum += part.in_swap;
    return sum;
  }
};

}  // namespace score::gang
