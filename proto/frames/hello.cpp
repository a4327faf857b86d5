#include "proto/frames/hello.hpp"

#include "proto/frames/errc.hpp"

#include <algorithm>

namespace score::proto {

base::Result<std::uint32_t> choose_version(VersionRange theirs, std::string_view who,
                                           VersionRange ours) {
  std::uint32_t best = std::min(theirs.highest, ours.highest);
  if (theirs.lowest <= theirs.highest && best >= theirs.lowest && best >= ours.lowest) return best;
  return base::fail(WireErrc::BadVersion, "{} speaks versions {}..{}, this program {}..{}", who,
                    theirs.lowest, theirs.highest, ours.lowest, ours.highest);
}

base::Result<void> check_chosen(std::uint32_t chosen, std::string_view who, VersionRange ours) {
  if (chosen >= ours.lowest && chosen <= ours.highest) return {};
  return base::fail(WireErrc::BadVersion, "{} chose version {}, this program speaks {}..{}", who,
                    chosen, ours.lowest, ours.highest);
}

}  // namespace score::proto
