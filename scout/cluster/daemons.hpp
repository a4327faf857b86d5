// Starts, watches and restarts the daemons of a cluster that run on this machine.
#pragma once

#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "scout/cluster/layout.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::scout {

// Contains the properties by which the daemons of a cluster differ from those of other clusters.
struct DaemonSetup {
  std::vector<std::string> launcher_options;  // after the usual ones
  std::vector<std::string> environment;       // "NAME=value", added to the usual variables
  // Starts a daemon ("head", "node05", "launcher-node05") elsewhere, such as in its network
  // namespace. If empty, spawn() starts it.
  std::function<Result<SpawnedProcess>(const std::string& daemon, const SpawnSpec&)> spawn;
};

class Daemons {
 public:
  // The layout must outlive this object.
  Daemons(const Layout& layout, DaemonSetup setup) : layout_(layout), setup_(std::move(setup)) {}

  // Starts a head. It ends with this thread. Errors name the program.
  Status start_head(std::uint32_t index = 0) {
    heads_ = std::max(heads_, index + 1);
    return start(head_name(index));
  }

  // Starts the node's daemon and its launcher.
  Status start_node(const std::string& node);
  // Kills the daemon if it runs, waits for its end, and starts it again. Errors: NotFound.
  Status restart(const std::string& name);

  [[nodiscard]] pid_t pid_of(const std::string& name) const;

  // Returns the number of heads that were started.
  [[nodiscard]] std::uint32_t heads() const { return heads_; }

  // Returns the names of the nodes, in order of their start.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }

  // Removes the child with this pid, which has ended and was reaped. Returns the daemon's name if
  // the child was a daemon.
  std::optional<std::string> forget(pid_t pid);

  // Returns the last line of a daemon's log, safe to print, which shows why it did not start.
  [[nodiscard]] std::string last_log_line(const std::string& name) const;

 private:
  Status start(const std::string& name);
  [[nodiscard]] Result<SpawnSpec> spec_of(const std::string& name) const;
  [[nodiscard]] Result<std::vector<std::string>> launcher_words(const std::string& node) const;

  const Layout& layout_;
  DaemonSetup setup_;
  std::vector<std::string> nodes_;
  std::uint32_t heads_ = 0;
  std::map<std::string, SpawnedProcess> running_;
};

// They return the name of a node's launcher, and the node that a daemon belongs to.
std::string launcher_of(const std::string& node);
std::string node_of(const std::string& daemon);

}  // namespace score::scout
