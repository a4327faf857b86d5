#include "scout/cluster/daemons.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::string_view kLauncherPrefix = "launcher-";

bool is_launcher(const std::string& name) {
  return name.starts_with(kLauncherPrefix);
}

// Finds a program in the build tree or in the installation.
Result<std::string> find_program(const std::string& directory, const std::string& name) {
  for (const char* place : {"", "/../sbin", "/../../sbin", "/../libexec/scored"}) {
    const auto path = directory + place + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return fail(Errc::NotFound, "cannot find {} next to score in {}", name, directory);
}

}  // namespace

std::string node_of(const std::string& name) {
  return is_launcher(name) ? name.substr(kLauncherPrefix.size()) : name;
}

std::string launcher_of(const std::string& node) {
  return std::string(kLauncherPrefix) + node;
}

Status Daemons::start_node(const std::string& node) {
  nodes_.push_back(node);
  auto status = start(launcher_of(node));
  if (status) status = start(node);
  return status;
}

Result<std::vector<std::string>> Daemons::launcher_words(const std::string& node) const {
  const auto shepherd = find_program(layout_.programs, "scored-shepherd");
  if (!shepherd) return shepherd.error();
  std::vector<std::string> words = {"scored-launcher", "--rundir", layout_.state_of(node),
                                    "--shepherd", *shepherd};
  words.insert(words.end(), setup_.launcher_options.begin(), setup_.launcher_options.end());
  if (geteuid() == 0) words.insert(words.end(), {"--min-uid", "0"});
  return words;
}

Result<SpawnSpec> Daemons::spec_of(const std::string& name) const {
  const auto program =
      find_program(layout_.programs, is_launcher(name) ? "scored-launcher" : "scored");
  if (!program) return program.error();
  SpawnSpec spec;
  spec.path = *program;
  spec.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                      "SCORED_VIRTUAL=" + layout_.directory};
  spec.environment.insert(spec.environment.end(), setup_.environment.begin(),
                          setup_.environment.end());
  if (const char* criu = std::getenv("SCORED_CRIU")) {
    spec.environment.push_back(std::string("SCORED_CRIU=") + criu);
  }
  spec.directory.assign(1, '/');  // g++ 12 warns falsely of = "/"
  spec.new_session = true;
  spec.die_with_parent = true;
  if (is_launcher(name)) {
    auto words = launcher_words(node_of(name));
    if (!words) return words.error();
    spec.argv = std::move(*words);
    std::error_code ignored;  // without the directory the helper fails
    const auto scratch = std::filesystem::canonical(layout_.scratch(), ignored);
    spec.environment.push_back("SCORED_SCRATCH_DIR=" + scratch.string());
  } else {
    const char* role = is_head(name) ? "--role=head" : "--role=node";
    spec.argv = {"scored", role, "--config", layout_.config_of(name)};
  }
  return spec;
}

Status Daemons::start(const std::string& name) {
  auto spec = spec_of(name);
  if (!spec) return spec.error();
  auto log = open_file(layout_.log_of(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!log) return log.error();
  spec->fds = {{log->get(), 1}, {log->get(), 2}};
  auto child = setup_.spawn ? setup_.spawn(name, *spec) : spawn(*spec);
  if (!child) {
    const bool is_limit = child.error().is(std::errc::resource_unavailable_try_again);
    const char* remedy =
        is_limit ? "; raise the limit on processes (ulimit -u, --pids-limit of a container)" : "";
    return child.error().with_context("cannot start {}{}", name, remedy);
  }
  running_[name] = std::move(*child);
  return {};
}

Status Daemons::restart(const std::string& name) {
  const auto found = running_.find(name);
  if (found == running_.end()) return fail(Errc::NotFound, "no daemon '{}'", name);
  if (found->second.pid > 0) {
    const auto sent = send_signal(found->second.pidfd.get(), SIGKILL);
    const auto ended = reap(found->second.pidfd.get(), true);
    if (sent && !ended) return ended.error();
  }
  return start(name);
}

pid_t Daemons::pid_of(const std::string& name) const {
  const auto found = running_.find(name);
  return found == running_.end() ? -1 : found->second.pid;
}

std::optional<std::string> Daemons::forget(pid_t pid) {
  for (auto& [name, process] : running_) {
    if (process.pid != pid) continue;
    process = {};  // the kernel may soon reuse the pid
    return name;
  }
  return std::nullopt;
}

std::string Daemons::last_log_line(const std::string& name) const {
  const auto log = read_file(layout_.log_of(name), 1U << 20U);
  return log ? last_line(*log) : "";
}

}  // namespace score::scout
