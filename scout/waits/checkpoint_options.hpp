// Declares the options of jobs that may be saved.
#pragma once

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <string>

namespace CLI {
class App;
}

namespace score::scout {

// The directory of a job's images in its working directory, unless the user names another.
inline constexpr const char* kCheckpointDirectory = "checkpoints";

struct CheckpointOptions {
  bool enabled = false;
  std::string directory;  // empty: kCheckpointDirectory
  std::string every;      // a duration; empty: only when a user asks
};

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options);

// Sets the absolute directory of the images, and the variable that tells the shepherd the period.
// directory: the job's. Errors: those of parse_duration(); Malformed (not 1 s to 30 days).
Status fill_checkpoint(const CheckpointOptions& options, const std::string& directory,
                       wire::LaunchSpec& spec);

}  // namespace score::scout
