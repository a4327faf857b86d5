#include "scout/run/environment.hpp"

#include "base/text.hpp"
#include "base/text/path_pattern.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <map>
#include <unistd.h>

namespace score::scout {

namespace {

using EnvironmentMap = std::map<std::string, std::string, std::less<>>;

EnvironmentMap own_variables() {
  EnvironmentMap variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto at = text.find('=');
    if (at == text.npos || at == 0) continue;
    variables.emplace(text.substr(0, at), text.substr(at + 1));
  }
  return variables;
}

// Returns the variables that a login sets.
EnvironmentMap basic_variables(const EnvironmentMap& own) {
  EnvironmentMap basic;
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG"}) {
    if (const auto found = own.find(name); found != own.end()) basic.insert(*found);
  }
  return basic;
}

Status add_item(EnvironmentMap& chosen, const EnvironmentMap& own, std::string_view item) {
  const auto at = item.find('=');
  if (item.empty() || at == 0) {
    return fail(Errc::Malformed, "--export: '{}' is not NAME or NAME=value",
                escape_terminal(item, 80));
  }
  const std::string name(item.substr(0, at));
  if (at != item.npos) {
    chosen[name] = std::string(item.substr(at + 1));
  } else if (const auto found = own.find(name); found != own.end()) {
    chosen[name] = found->second;
  }
  return {};
}

// Returns the error in the pattern; empty if there is none.
std::string check_file_name(const std::string& pattern) {
  const auto sound = check_pattern(pattern);
  return sound ? std::string() : sound.error().context();
}

}  // namespace

Result<std::vector<std::string>> exported_environment(std::string_view rule, bool unbuffered) {
  const EnvironmentMap own = own_variables();
  EnvironmentMap chosen;
  for (const auto item : split(rule, ',')) {
    if (item == "ALL") {
      chosen.insert(own.begin(), own.end());
    } else if (item == "NONE") {
      chosen.merge(basic_variables(own));
    } else if (auto status = add_item(chosen, own, item); !status) {
      return status.error();
    }
  }
  if (!rule.starts_with("ALL")) chosen.merge(basic_variables(own));
  if (unbuffered) {
    chosen["LD_PRELOAD"] = "/usr/libexec/coreutils/libstdbuf.so";
    chosen["_STDBUF_O"] = "0";
    chosen["_STDBUF_E"] = "0";
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : chosen) entries.push_back(name + "=" + value);
  return entries;
}

Result<std::vector<std::string>> named_variables(std::string_view rule) {
  const EnvironmentMap own = own_variables();
  EnvironmentMap chosen;
  for (const auto item : split(rule, ',')) {
    if (auto status = add_item(chosen, own, item); !status) return status.error();
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : chosen) entries.push_back(name + "=" + value);
  return entries;
}

void add_place_options(CLI::App& app, PlaceOptions& options) {
  app.add_option("-D,--chdir", options.directory, "Directory of the tasks; default: this one")
      ->type_name("DIR");
  app.add_option("--export", options.export_rule,
                 "Environment: ALL, NONE, or a list NAME,NAME=value,... that may include ALL")
      ->type_name("RULE");
  app.add_option("-i,--input", options.input,
                 "Ranks that read standard input: all, none or one rank (0); or a file to read")
      ->type_name("WHAT")
      ->check(check_file_name);
  app.add_option("-o,--output", options.output,
                 "File for standard output; %j job, %x its name, %t rank, %N node, %A array, %a "
                 "task of it, %u user")
      ->type_name("FILE")
      ->check(check_file_name);
  app.add_option("-e,--error", options.error, "File for standard error")
      ->type_name("FILE")
      ->check(check_file_name);
  app.add_option("--open-mode", options.open_mode,
                 "Empty the files of --output and --error (truncate) or append to them (append)")
      ->check(CLI::IsMember({"truncate", "append"}));
  app.add_flag("--slurm-env", options.slurm_env, "Also set variables with Slurm's names");
}

}  // namespace score::scout
