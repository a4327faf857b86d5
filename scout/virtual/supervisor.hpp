// The process that owns a virtual cluster: it starts the daemons, runs the command, serves the
// control socket, and removes everything when the command has ended, on a stop request, or when the
// `score virtual` that started it has ended.
//
//   Booting --all nodes up--> Up --command ended, stop, starter gone--> Stopping --> nothing left
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "scout/virtual/control.hpp"
#include "scout/virtual/daemons.hpp"
#include "scout/virtual/layout.hpp"
#include "scout/virtual/netns.hpp"
#include "scout/virtual/registry.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace score::scout {

class Supervisor {
 public:
  // `starter` is the socket to the process that started us (SOCK_SEQPACKET). We send "up DIR",
  // "status CODE" or "error TEXT"; it sends "signal N". Unless options.keep its end stops us.
  Supervisor(VirtualOptions options, std::string programs, UniqueFd starter);

  // Runs until nothing is left of the cluster; errors go to the starter.
  void run();

 private:
  enum class State { Booting, Up, Stopping };

  Status boot();
  Status make_cgroup();
  void turn();
  void check_up();
  void on_up();
  void on_starter();
  void on_signals();
  void on_child(pid_t pid, int wait_status);
  void on_control();
  std::string answer(const std::string& request);
  void stop(const std::string& message);
  void tear_down();
  void send_to_starter(const std::string& message);
  void describe_cluster();
  [[nodiscard]] std::string last_log_line(const std::string& daemon) const;

  VirtualOptions options_;
  Layout layout_;
  UniqueFd starter_;
  UniqueFd signals_;
  std::optional<ControlServer> control_;
  std::optional<ClusterDirectory> directory_;
  std::optional<NodeNetworks> networks_;
  std::optional<Daemons> daemons_;
  State state_ = State::Booting;
  pid_t command_ = -1;
  TimePoint boot_deadline_{};
};

}  // namespace score::scout
