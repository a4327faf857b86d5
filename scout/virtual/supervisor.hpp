// The process that owns a virtual cluster: it starts the daemons, runs the command, answers on the
// control socket, and clears everything away when the command has ended, when it is told to stop,
// or when the `score virtual` that started it is gone.
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
  // `starter` is the socket to the process that started us (SOCK_SEQPACKET). We tell it "up DIR",
  // "status CODE" or "error TEXT"; it tells us "signal N"; its end is ours unless options.keep.
  Supervisor(VirtualOptions options, std::string programs, UniqueFd starter);

  // Until nothing is left. Everything of interest was told to the starter.
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
  void tell_starter(const std::string& message);
  void describe_cluster();
  [[nodiscard]] std::string last_words(const std::string& daemon) const;

  VirtualOptions options_;
  Layout layout_;
  UniqueFd starter_;
  UniqueFd signals_;
  std::optional<ControlDoor> control_;
  std::optional<ClusterDirectory> directory_;
  std::optional<NodeNetworks> networks_;
  std::optional<Daemons> daemons_;
  State state_ = State::Booting;
  pid_t command_ = -1;
  TimePoint boot_deadline_{};
};

}  // namespace score::scout
