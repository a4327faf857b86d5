// Starter is the process that the user starts. It starts the supervisor of a cluster, forwards
// signals and returns the exit code, so it can be killed at any time.
#pragma once

#include "base/os/fd.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/cluster/supervisor.hpp"
#include "scout/session/command.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::scout {

struct StarterSpec {
  SupervisorOptions supervisor;
  // Called in the supervisor's process.
  std::function<std::unique_ptr<OwnCluster>()> make_cluster;
  Layout layout;  // of the cluster; its directory is set here
  // Called once the cluster is up, before the command of a kept cluster is run.
  std::function<void(const Layout&)> on_up;
};

class Starter {
 public:
  Starter(const Invocation& invocation, StarterSpec spec)
      : invocation_(invocation), spec_(std::move(spec)) {}

  // Returns the exit code: the command's, or kExitError if the cluster failed. With `keep` it
  // returns once the cluster is up and the command has ended.
  int run();

 private:
  Status start_supervisor();
  void turn();
  void on_message();
  void on_signal();
  void on_up(const std::string& directory);
  [[nodiscard]] int run_kept_command() const;

  const Invocation& invocation_;
  StarterSpec spec_;
  UniqueFd socket_;
  UniqueFd signals_;
  std::optional<int> code_;
  bool is_up_ = false;
  bool done_ = false;
};

// Returns the shell command that directs a shell to the cluster: "export SCORED_SERVER=...
// PATH=...".
std::string use_words(const Layout& layout);

// Stops the cluster in the directory, and removes what is left of a dead one. `kind` is a noun for
// messages: "virtual cluster". Returns the exit code.
int stop_cluster(const Invocation& invocation, const std::string& directory, std::string_view kind);

// Prints the directories of this user's running clusters. Returns the exit code.
int list_clusters(const Invocation& invocation, const std::string& registry);

}  // namespace score::scout
