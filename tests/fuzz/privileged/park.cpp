// This fuzz target gives scored-park any text as /proc/PID/smaps, in pieces of any length. What it
// keeps are regions with an end behind their start, and no size wraps around.
#include "base/assert.hpp"
#include "scored/privileged/park/regions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] + std::size_t{1};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  score::park::RegionReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  const auto regions = reader.finish();
  SCORE_ASSERT(regions.size() <= size);
  for (const auto& region : regions) {
    SCORE_ASSERT(region.start < region.end);
    for (const std::uint64_t bytes : {region.rss, region.pss, region.anonymous, region.swap}) {
      SCORE_ASSERT(bytes <= UINT64_MAX / 2);
    }
  }
  return 0;
}
