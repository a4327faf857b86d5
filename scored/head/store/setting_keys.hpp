// Names keys of settings that the store and those who read settings need.
#pragma once

#include "base/ids.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace score::head {

inline constexpr std::string_view kCheckpointPrefix = "checkpoint:";

// Returns the key of the last complete set of images of a job.
inline std::string checkpoint_key(JobId job) {
  return fmt::format("{}{}", kCheckpointPrefix, job);
}

}  // namespace score::head
