// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scout/waits/checkpoint_options.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>

namespace score::scout {

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  app.add_flag("--checkpoint", options.enabled, "Run the job so that score checkpoint can save it");
  app.add_option("--checkpoint-dir", options.directory,
                 "Directory of its images (implies --checkpoint); default: checkpoints")
      ->type_name("DIR");
}

std::string images_of(const CheckpointOptions& options, const std::string& directory) {
  const bool is_named = !options.directory.empty();
  if (!options.enabled && !is_named) return {};
  return std::filesystem::path(directory) / (is_named ? options.directory : kCheckpointDirectory);
}

}  // namespace score::scout
