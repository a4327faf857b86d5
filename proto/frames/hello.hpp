// Which version of the messages two programs speak: the highest that both do.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string_view>

namespace score::proto {

struct VersionRange {
  std::uint32_t lowest = 0;
  std::uint32_t highest = 0;
};

// Of the messages that this program understands; the hellos carry it. Alone in its file, so that
// the tests link programs that speak others.
VersionRange spoken_versions();

// Error: BadVersion, "client speaks versions 3..4, this program 1..1". `who` names the other side.
base::Result<std::uint32_t> choose_version(VersionRange theirs, std::string_view who,
                                           VersionRange ours = spoken_versions());

// The side that proposed versions checks the chosen one. Error: BadVersion.
base::Result<void> check_chosen(std::uint32_t chosen, std::string_view who,
                                VersionRange ours = spoken_versions());

}  // namespace score::proto
