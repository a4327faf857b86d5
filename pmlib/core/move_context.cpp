// A process that was restored elsewhere keeps its context; only who it is and where its peers are
// has changed.
#include "pmlib/core/segment.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pm {

int move_context(const Segment& restored, const Segment& target) {
  SegmentHeader& h = restored.header();
  const SegmentHeader& to = target.header();
  const auto is_same_kind = [](const LinkConfig& one, const LinkConfig& other) {
    return one.kind == other.kind;
  };
  const Geometry& geometry = restored.geometry();
  if (h.rank != to.rank || geometry.size != target.geometry().size ||
      geometry.links != target.geometry().links || h.device.kind != to.device.kind ||
      !std::equal(h.more_links.begin(), h.more_links.end(), to.more_links.begin(), is_same_kind)) {
    return EINVAL;
  }
  if (geometry.payload_bytes > target.geometry().payload_bytes) return EMSGSIZE;
  for (std::uint32_t i = 0; i < geometry.size; ++i) {
    if (restored.peer(i).route != target.peer(i).route) return EINVAL;
  }
  for (std::uint32_t i = 0; i < geometry.size; ++i) {
    for (std::uint32_t k = 0; k < geometry.links; ++k) {
      restored.link_address(k, i) = target.link_address(k, i);
    }
  }
  h.key = to.key;
  h.generation = to.generation;
  h.channel = to.channel;
  h.auth = to.auth;
  h.resumes.fetch_add(1, std::memory_order_release);
  return 0;
}

}  // namespace score::pm
