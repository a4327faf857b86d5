// The tests are in test_run.py.
#include "scout/run/foreign_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <string_view>

namespace score::scout {

namespace {

struct ForeignOption {
  std::string_view words;  // separated by blanks
  const char* hint;
};

constexpr ForeignOption kOfSlurm[] = {
    {" -I ", "here it is --immediate"},
    {" --exclusive ", "here it is --queue exclusive"},
    {" -s --oversubscribe ", "jobs share the nodes in time anyway"},
    {" -K --kill-on-bad-exit ", "a failing task ends the job anyway, unless --keep-going"},
    {" -G --gpus --gpus-per-node ", "here it is --gres gpu:N, on each node"},
};

}  // namespace

std::string explain_foreign(const CLI::App& app, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with('-') || app.get_option_no_throw(name) != nullptr) continue;
    for (const auto& [names, hint] : kOfSlurm) {
      if (names.find(" " + name + " ") != names.npos) return fmt::format("{}: {}", name, hint);
    }
  }
  return {};
}

}  // namespace score::scout
