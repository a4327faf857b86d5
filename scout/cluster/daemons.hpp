// The daemons of a cluster that run on this machine: starts, watches and restarts them.
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

// How the daemons of a cluster differ from those of another.
struct DaemonSetup {
  std::vector<std::string> launcher_options;  // after the usual ones
  std::vector<std::string> environment;       // "NAME=value", added to the usual
  // Starts a daemon ("head", "node05", "launcher-node05") elsewhere, such as in its network
  // namespace. Empty: spawn().
  std::function<Result<SpawnedProcess>(const std::string& daemon, const SpawnSpec&)> spawn;
};

class Daemons {
 public:
  // The layout must outlive this object.
  Daemons(const Layout& layout, DaemonSetup setup) : layout_(layout), setup_(std::move(setup)) {}

  // They end with this thread. Errors name the program.
  Status start_head(std::uint32_t index = 0) {
    heads_ = std::max(heads_, index + 1);
    return start(head_name(index));
  }

  // The node's daemon and its launcher.
  Status start_node(const std::string& node);
  // Kills the daemon if it runs, waits for its end, and starts it again. Errors: NotFound.
  Status restart(const std::string& name);

  [[nodiscard]] pid_t pid_of(const std::string& name) const;

  // How many heads were started.
  [[nodiscard]] std::uint32_t heads() const { return heads_; }

  // The names of the nodes, in order of their start.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }

  // The child with this pid has ended and was reaped. Gives the daemon's name if it was one.
  std::optional<std::string> forget(pid_t pid);

  // The last line of a daemon's log, fit to be printed: why it did not start.
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

// The name of a node's launcher, and the node that a daemon belongs to.
std::string launcher_of(const std::string& node);
std::string node_of(const std::string& daemon);

}  // namespace score::scout
