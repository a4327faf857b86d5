// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scout/waits/checkpoint_options.hpp"

#include "base/errc.hpp"
#include "base/time.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>

namespace score::scout {

namespace {

constexpr std::chrono::seconds kShortestPeriod{1};
constexpr std::chrono::seconds kLongestPeriod = std::chrono::days{30};

}  // namespace

void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  app.add_flag("--checkpoint", options.enabled, "Run the job so that score checkpoint can save it");
  app.add_option("--checkpoint-dir", options.directory,
                 "Directory of its images (implies --checkpoint); default: checkpoints")
      ->type_name("DIR");
  app.add_option(
         "--checkpoint-every", options.every,
         "Save the job again and again, this long after the last time (implies --checkpoint)")
      ->type_name("TIME");
}

Status fill_checkpoint(const CheckpointOptions& options, const std::string& directory,
                       wire::LaunchSpec& spec) {
  const bool is_named = !options.directory.empty();
  if (!options.enabled && !is_named && options.every.empty()) return {};
  spec.set_checkpoint(std::filesystem::path(directory) /
                      (is_named ? options.directory : kCheckpointDirectory));
  if (options.every.empty()) return {};
  const auto period = parse_duration(options.every, BareNumber::Minutes);
  if (!period) return period.error().with_context("--checkpoint-every");
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*period);
  if (seconds < kShortestPeriod || seconds > kLongestPeriod) {
    return fail(Errc::Malformed, "--checkpoint-every: a time from 1 s to 30 days");
  }
  spec.add_env(fmt::format("SCORE_CHECKPOINT_EVERY={}", seconds.count()));
  return {};
}

}  // namespace score::scout
