// This fuzz target parses address files. Any bytes must give a network for which contexts can be
// created, or one line that names the error.
#include "pmlib/network/network.hpp"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  score::pm::JobNetwork network;
  std::string error;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!score::pm::parse_network(text, network, error)) {
    if (error.empty()) std::abort();
    return 0;
  }
  if (!score::pm::SegmentLayout::of(score::pm::geometry_for(network))) std::abort();
  return 0;
}
