// The host agent runs on each host at the remote end of a link. It reads its orders from standard
// input, runs the node daemon and its launcher, and removes everything when its input ends, when no
// line has come for kLease, or on SIGTERM. So nothing is left when score start is killed, when its
// host fails, or when the connection breaks.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "scout/cluster/supervisor.hpp"
#include "scout/start/plan/messages.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace score::scout {

class HostAgent : public OwnCluster {
 public:
  // The supervisor sends a beat once per second. The lease is as long as node_timeout of the head.
  static constexpr Duration kLease = std::chrono::seconds{30};

  using OwnCluster::OwnCluster;

  Status boot(const std::string& directory) override;

  Result<bool> is_up() override { return true; }

  [[nodiscard]] int fd() const override { return STDIN; }

  Status serve() override;
  Status on_child(pid_t pid, int shell_code) override;

  [[nodiscard]] std::string describe() const override { return "{}\n"; }

  std::vector<std::string> tear_down() override;

 private:
  static constexpr int STDIN = 0;

  Status read_orders();
  Status check_orders() const;
  Status write_files();
  Status start_daemons();
  // Reads the available input. Errors: the input has ended, or a line is too long.
  Status read_input();
  std::optional<std::string> next_line();

  OrdersReader reader_;
  std::string input_;
  TimePoint heard_{};       // time of the last input
  TimePoint restart_at_{};  // restart time of the daemon below
  std::optional<std::string> ended_;
};

// Runs a host agent until nothing of it is left. `pushed` is a directory to remove at the end, or
// empty. Returns the exit code.
int run_host_agent(const std::string& programs, const std::string& pushed);

}  // namespace score::scout
