#pragma once
// This header declares the table [hooks] of the configuration: programs of the site that run before
// and after jobs, for each submission, and to check nodes. See docs/adr/0118.

#include "base/config/config.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace score {

enum class Hook : std::uint8_t { Prolog, Epilog, Health, Submit };

[[nodiscard]] std::string_view name_of(Hook hook);

struct HooksConfig {
  std::string prolog;  // absolute paths; empty: there is no such hook
  std::string epilog;
  std::string health;
  std::string submit;
  Duration timeout = std::chrono::seconds{60};  // of prolog, epilog and health
  Duration submit_timeout = std::chrono::seconds{5};
  Duration health_every = std::chrono::minutes{5};
  bool accepts_on_failure = false;  // what a submission gets from a submit hook that fails

  [[nodiscard]] bool has_job_hooks() const { return !prolog.empty() || !epilog.empty(); }

  [[nodiscard]] const std::string& path_of(Hook hook) const;
  [[nodiscard]] Duration timeout_of(Hook hook) const;

  friend bool operator==(const HooksConfig&, const HooksConfig&) = default;
};

// Reads [hooks]; a wrong entry becomes an error of the file.
[[nodiscard]] HooksConfig read_hooks_config(ConfigSection& root);

// Checks that the hook is an executable file which only root and `owner` could change or replace:
// the file and all directories above it belong to them, and others may not write there. A link is
// refused. The error has one line with the path.
[[nodiscard]] Status check_hook_file(const std::string& path, UserId owner);

// Checks the files of these hooks, as check_hook_file(). Hooks that are not set are sound.
[[nodiscard]] Status check_hook_files(const HooksConfig& config, std::initializer_list<Hook> hooks,
                                      UserId owner);

}  // namespace score
