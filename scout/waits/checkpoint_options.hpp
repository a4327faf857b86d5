// Declares the options of jobs that may be saved.
#pragma once

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
};

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options);

// Returns the absolute directory of the images; empty if the job is not to be saved. directory: the
// job's.
std::string images_of(const CheckpointOptions& options, const std::string& directory);

}  // namespace score::scout
