// Coordinated access: all ranks of a group do their parts of one access in one call each. The data
// goes to the servers as few large requests, while all parts are under way; then the ranks meet at
// the home of the file, so that no rank goes on before all data is in place, and all get the same
// error. That needs no network between the ranks.
#pragma once

#include "pario/client/volume.hpp"

#include <string_view>

namespace score::pario {

class Group {
 public:
  // `name` is the same for all ranks, and no other group of the volume has it.
  Group(Volume& volume, std::string_view name, std::uint32_t rank, std::uint32_t size);

  // After the own part: waits for all. `result` is own bytes or a negative errno value; returned is
  // that, or the error of any rank: also ECANCELED if one is gone, ETIMEDOUT if one has not come
  // within a minute.
  ssize_t meet(const OpenFile& file, ssize_t result);

 private:
  Volume& volume_;
  std::uint64_t group_;
  Gathered part_;
};

}  // namespace score::pario
