#include "scout/virtual/daemons.hpp"

#include <algorithm>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::string_view kLauncherPrefix = "launcher-";

bool is_launcher(const std::string& name) {
  return name.starts_with(kLauncherPrefix);
}

std::string node_of(const std::string& name) {
  return is_launcher(name) ? name.substr(kLauncherPrefix.size()) : name;
}

// In the build tree or where it is installed.
Result<std::string> find_program(const std::string& directory, const std::string& name) {
  for (const char* place : {"", "/../sbin", "/../libexec/scored"}) {
    const auto path = directory + place + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return fail(Errc::NotFound, "{} not found beside score in {}", name, directory);
}

}  // namespace

std::string launcher_of(const std::string& node) {
  return std::string(kLauncherPrefix) + node;
}

Daemons::Daemons(const Layout& layout, const VirtualOptions& options,
                 std::optional<NodeNetworks>& networks)
    : layout_(layout), options_(options), networks_(networks), nodes_(node_names(options.nodes)) {}

Status Daemons::start_all() {
  auto status = start("head");
  for (const auto& node : nodes_) {
    if (status) status = start(launcher_of(node));
    if (status) status = start(node);
  }
  return status;
}

Result<SpawnSpec> Daemons::spec_of(const std::string& name) const {
  const auto program =
      find_program(layout_.programs, is_launcher(name) ? "scored-launcher" : "scored");
  if (!program) return program.error();
  SpawnSpec spec;
  spec.path = *program;
  spec.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                      "SCORED_VIRTUAL=" + layout_.directory};
  spec.directory = "/";
  spec.new_session = true;
  spec.die_with_parent = true;
  if (!is_launcher(name)) {
    const char* role = name == "head" ? "--role=head" : "--role=node";
    spec.argv = {"scored", role, "--config", layout_.config_of(name)};
    return spec;
  }
  const auto shepherd = find_program(layout_.programs, "scored-shepherd");
  if (!shepherd) return shepherd.error();
  const auto cgroup = layout_.cgroup_of(node_of(name));
  spec.argv = {"scored-launcher",
               "--rundir",
               layout_.state_of(node_of(name)),
               "--cgroup-root",
               cgroup.empty() ? "none" : cgroup,
               "--shepherd",
               *shepherd};
  if (options_.is_ethernet()) {
    spec.argv.insert(spec.argv.end(), {"--network-interface", "eth0"});
  }
  if (geteuid() == 0) spec.argv.emplace_back("--allow-root");
  return spec;
}

Result<SpawnedProcess> Daemons::spawn_inside(const std::string& name, const SpawnSpec& spec) {
  const auto start = [&]() -> Result<SpawnedProcess> {
    auto child = spawn(spec);
    if (!child) return child.error().error;
    return std::move(*child);
  };
  if (!networks_) return start();
  if (name == "head") return networks_->inside_head(start);
  const auto node = std::find(nodes_.begin(), nodes_.end(), node_of(name));
  return networks_->inside_node(static_cast<std::size_t>(node - nodes_.begin()), start);
}

Status Daemons::start(const std::string& name) {
  auto spec = spec_of(name);
  if (!spec) return spec.error();
  auto log = open_file(layout_.log_of(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!log) return log.error();
  spec->fds = {{log->get(), 1}, {log->get(), 2}};
  auto child = spawn_inside(name, *spec);
  if (!child) return child.error().with_context("start {}", name);
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
    process = {};  // the pid may soon be another's
    return name;
  }
  return std::nullopt;
}

}  // namespace score::scout
