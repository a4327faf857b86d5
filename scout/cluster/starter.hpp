// Starter is the process that the user starts. It starts the supervisor of a cluster, forwards
// signals and returns the exit code, so it can be killed at any time. The functions below it are
// the common parts of its command line.
#pragma once

#include "base/os/fd.hpp"
#include "base/time.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/cluster/supervisor.hpp"
#include "scout/session/command.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace score::scout {

struct StarterSpec {
  SupervisorOptions supervisor;
  // Called in the supervisor's process.
  std::function<std::unique_ptr<OwnCluster>()> make_cluster;
  std::string programs;     // directory of `score`
  bool print_json = false;  // print the description of the cluster once it is up
  // The remaining texts describe a kept cluster to the user.
  std::string title;        // before its directory: "cluster: 4 hosts,"
  std::string variables{};  // added to the variables that direct a shell to it: " NAME=value"
  std::string stop;         // words after `score` that stop it, before its directory
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
  Layout layout_;  // of the cluster, once it is up
  UniqueFd socket_;
  UniqueFd signals_;
  std::optional<int> code_;
  bool is_up_ = false;
  bool done_ = false;
};

// Adds --programs, the directory of `score`, which `score` passes to these programs. It is hidden
// from users. By default it is the directory of the running program.
void add_programs_option(CLI::App& app, std::string& programs);

// Adds --slice and --slots.
void add_slice_options(CLI::App& app, std::string& slice, std::uint32_t& slots);

// Parses the value of an option as a time above 0. Errors: Malformed, which names the option.
Result<Duration> parse_time(std::string_view option, const std::string& text);

// Stops the cluster in the directory, and removes what is left of a dead one. `kind` is a noun for
// messages: "virtual cluster". Returns the exit code.
int stop_cluster(const Invocation& invocation, const std::string& directory, std::string_view kind);

// Prints the directories of this user's running clusters. Returns the exit code.
int list_clusters(const std::string& registry);

}  // namespace score::scout
