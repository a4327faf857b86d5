// Which version of the messages two programs speak: the highest that both do.
#pragma once

#include "base/result.hpp"
#include "proto/frames/wire.hpp"

#include <cstdint>

namespace score::proto {

struct VersionRange {
  std::uint32_t lowest = kLowestVersion;
  std::uint32_t highest = kHighestVersion;
};

// Error: BadVersion, "client speaks versions 3..4, this program 1..1". `who` names the other side.
base::Result<std::uint32_t> choose_version(VersionRange theirs, std::string_view who,
                                           VersionRange ours = VersionRange());

// The side that proposed versions checks the chosen one. Error: BadVersion.
base::Result<void> check_chosen(std::uint32_t chosen, std::string_view who,
                                VersionRange ours = VersionRange());

}  // namespace score::proto
