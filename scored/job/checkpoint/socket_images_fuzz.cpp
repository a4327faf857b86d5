// This fuzz target gives the replacement of sockets any bytes as criu's images. A good image stays
// readable, and its second replacement changes nothing.
#include "base/assert.hpp"
#include "scored/job/checkpoint/socket_images.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace score::shepherd;
  constexpr std::array<std::uint64_t, 2> kInodes{7, 300};
  const std::string_view image(reinterpret_cast<const char*>(data), size);
  std::set<std::uint64_t> ids;
  if (const auto changed = replace_sockets(image, kInodes, ids)) {
    std::set<std::uint64_t> none;
    const auto again = replace_sockets(*changed, kInodes, none);
    SCORE_ASSERT(again.has_value() && *again == *changed && none.empty());
  }
  if (const auto changed = replace_descriptors(image, {5, 6})) {
    const auto again = replace_descriptors(*changed, {5, 6});
    SCORE_ASSERT(again.has_value() && *again == *changed);
  }
  return 0;
}
