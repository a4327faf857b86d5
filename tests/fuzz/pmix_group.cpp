// This fuzz target parses the concatenated parts of a PMIx group: data of other nodes' tasks.
//
// A parsed group must encode to one part with the same meaning.

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
