// Two programs choose the version of their messages: the highest that both speak.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string_view>

namespace score::proto {

struct VersionRange {
  std::uint32_t lowest = 0;
  std::uint32_t highest = 0;
};

// Returns the versions of the messages that this program understands; the hellos carry it. It is in
// a separate file, so that tests can link programs that speak different versions.
VersionRange spoken_versions();

// Returns the chosen version. `who` names the other side. Errors: BadVersion, "client speaks
// versions 3..4, this program 1..1".
base::Result<std::uint32_t> choose_version(VersionRange theirs, std::string_view who,
                                           VersionRange ours = spoken_versions());

// Checks the chosen version on the side that proposed versions. Errors: BadVersion.
base::Result<void> check_chosen(std::uint32_t chosen, std::string_view who,
                                VersionRange ours = spoken_versions());

}  // namespace score::proto
