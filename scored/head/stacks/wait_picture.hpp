#pragma once
// A WaitPicture shows where the ranks of a stopped job wait: for each rank its stacks down to the
// function that waits, and what its PM context says. Two equal pictures, between which the job
// could run, show ranks that make no progress. It has no I/O.

#include "proto/stacks.pb.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace score::head {

class WaitPicture {
 public:
  explicit WaitPicture(const wire::Stacks& stacks);

  // Returns true if each rank that could be read waits in the function that it names, and no
  // message is in flight to it. A rank whose stacks cannot be read passes, unless it polls: then
  // only its stacks show that it is still in that function.
  [[nodiscard]] bool is_still() const { return is_still_; }

  bool operator==(const WaitPicture&) const = default;

 private:
  struct Rank {
    std::string call;            // that waits
    std::int64_t from = 0;       // as in RankState
    std::int64_t tag = 0;        // as in RankState
    std::string sending_to;      // as in RankState
    std::set<std::size_t> ways;  // hashes of the stacks down to that function

    bool operator==(const Rank&) const = default;
  };

  void add_stacks(const wire::StackTree& tree);

  std::map<std::uint32_t, Rank> ranks_;
  std::set<std::uint32_t> polls_;
  bool is_still_ = true;
};

}  // namespace score::head
