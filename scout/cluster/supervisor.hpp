// The supervisor is the process that owns a cluster of one user. It boots the cluster, runs the
// command, serves the control socket, and removes everything when the command has ended, on a stop
// request, or when the process that started it has ended. The parts of the cluster are an
// OwnCluster.
//
//   Booting --is_up()--> Up --command ended, stop, starter gone--> Stopping --> nothing left
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "scout/cluster/control.hpp"
#include "scout/cluster/daemons.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/cluster/registry.hpp"

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::scout {

// Manages the parts of a cluster: boot() creates them and tear_down() removes them. All calls come
// from one thread.
class OwnCluster {
 public:
  // `programs` is the directory of `score`.
  explicit OwnCluster(std::string programs) { layout_.programs = std::move(programs); }

  OwnCluster(const OwnCluster&) = delete;
  OwnCluster& operator=(const OwnCluster&) = delete;
  virtual ~OwnCluster() = default;

  // Starts the parts; `directory` belongs to this cluster. An error stops the cluster.
  virtual Status boot(const std::string& directory) = 0;

  [[nodiscard]] const Layout& layout() const { return layout_; }

  // Returns true once the cluster is up. It is called every kBootTick_ms while the cluster boots.
  // An error stops the cluster.
  virtual Result<bool> is_up() = 0;

  // The descriptor is readable when serve() has something to do; -1 means never.
  [[nodiscard]] virtual int fd() const { return -1; }

  // This is called when fd() is readable and at least once per second. An error stops the cluster.
  virtual Status serve() { return {}; }

  // Called after a child of this process has ended and was reaped. An error stops the cluster.
  virtual Status on_child(pid_t pid, int shell_code) = 0;

  // Restarts a daemon of this machine and returns its pid; boot() must have started it. Errors:
  // NotFound.
  Result<pid_t> restart(const std::string& name);

  // Returns the description of the cluster as JSON, which scout/JSON.md specifies.
  [[nodiscard]] virtual std::string describe() const = 0;

  // Returns lines for the user who starts an interactive shell on the cluster. They are printed
  // before the shell's first prompt. Called once, when the cluster is up. The default is no lines.
  [[nodiscard]] virtual std::vector<std::string> greeting() const { return {}; }

  // Returns the lines for the user since the last call.
  virtual std::vector<std::string> take_notes() { return {}; }

  // Ends everything outside this process's descendants. Returns one line for each part that could
  // not be removed. The supervisor then kills its descendants, and calls it a second time for what
  // they held.
  virtual std::vector<std::string> tear_down() = 0;

  static constexpr int kBootTick_ms = 5;

 protected:
  Layout layout_;
  std::optional<Daemons> daemons_;  // of this machine; set by boot()
};

struct SupervisorOptions {
  std::string registry;              // name of the registry: "scored-virtual"
  bool keep = false;                 // the end of the starter does not stop the cluster
  std::vector<std::string> command;  // run unless `keep`; may be empty then
};

class Supervisor {
 public:
  // `starter` is the socket to the process that started us (SOCK_SEQPACKET). We send "up DIR",
  // "note TEXT", "status CODE" or "error TEXT"; it sends "signal N".
  Supervisor(SupervisorOptions options, std::unique_ptr<OwnCluster> cluster, UniqueFd starter);

  // Runs until nothing is left of the cluster. It sends errors to the starter.
  void run();

 private:
  enum class State { Booting, Up, Stopping };

  Status boot();
  void turn();
  void check_up();
  void on_up();
  void on_starter();
  void on_signals();
  void on_child(pid_t pid, int wait_status);
  void on_control();
  std::string answer(const std::string& request);
  void stop(const std::string& message);
  void stop_if_failed(const Status& status);
  void tear_down();
  void pass_notes();
  void send_to_starter(const std::string& message);
  void describe_cluster();

  SupervisorOptions options_;
  std::unique_ptr<OwnCluster> cluster_;
  UniqueFd starter_;
  UniqueFd signals_;
  std::optional<ControlServer> control_;
  std::optional<ClusterDirectory> directory_;
  State state_ = State::Booting;
  pid_t command_ = -1;
};

}  // namespace score::scout
