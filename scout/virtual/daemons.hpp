// The daemons of a virtual cluster: starts, watches and restarts them.
#pragma once

#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "scout/virtual/layout.hpp"
#include "scout/virtual/netns.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::scout {

class Daemons {
 public:
  Daemons(const Layout& layout, const VirtualOptions& options,
          std::optional<NodeNetworks>& networks);

  // Starts all. They end with this thread. Errors name the program.
  Status start_all();
  // Kills the daemon ("head", "node05", "launcher-node05") if it runs, waits for its end, and
  // starts it again. Errors: NotFound.
  Status restart(const std::string& name);

  [[nodiscard]] pid_t pid_of(const std::string& name) const;

  // The names of the nodes, in order.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }

  // The child with this pid has ended and was reaped. Gives the daemon's name if it was one.
  std::optional<std::string> forget(pid_t pid);

 private:
  Status start(const std::string& name);
  [[nodiscard]] Result<SpawnSpec> spec_of(const std::string& name) const;
  Result<SpawnedProcess> spawn_inside(const std::string& name, const SpawnSpec& spec);

  const Layout& layout_;
  const VirtualOptions& options_;
  std::optional<NodeNetworks>& networks_;
  std::vector<std::string> nodes_;
  std::map<std::string, SpawnedProcess> running_;
};

// The name of a node's launcher.
std::string launcher_of(const std::string& node);

}  // namespace score::scout
