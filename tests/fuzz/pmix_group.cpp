// What the nodes of a PMIx group say of it, put behind each other: data of other nodes' tasks.
//
// What must hold: what is taken for a group can be said again as one part, and means the same then.

#include "base/assert.hpp"
#include "scored/job/pmix/group_part.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace score::pmix;
  const auto whole = join_parts({reinterpret_cast<const char*>(data), size});
  if (!whole) return 0;
  SCORE_ASSERT(whole->name.size() + whole->data.size() <= size, "made out of nothing");
  SCORE_ASSERT(join_parts(encode_part(*whole)) == whole, "said again");
  return 0;
}
