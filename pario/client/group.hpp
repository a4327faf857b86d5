// Implements coordinated access: all ranks of a group do their parts of one access in one call
// each. The data is sent to the servers in few large requests while all parts are in progress. The
// ranks then meet at the home of the file, so that no rank continues before all data is in place,
// and all get the same error. This needs no network between the ranks.
#pragma once

#include "pario/client/volume.hpp"

#include <string_view>

namespace score::pario {

class Group {
 public:
  // `name` is the same for all ranks, and no other group of the volume has it.
  Group(Volume& volume, std::string_view name, std::uint32_t rank, std::uint32_t size);

  // Call this after the own part; it waits for all ranks. `result` is the number of own bytes or a
  // negative errno value. Returns `result`, or the error of any rank: also ECANCELED if one has
  // ended, and ETIMEDOUT if one has not arrived within a minute.
  ssize_t meet(const OpenFile& file, ssize_t result);

 private:
  Volume& volume_;
  std::uint64_t group_;
  Gathered part_;
};

}  // namespace score::pario
