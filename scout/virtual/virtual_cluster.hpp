// Manages the parts of a virtual cluster: N nodes on this machine.
#pragma once

#include "base/result.hpp"
#include "base/time.hpp"
#include "scout/cluster/supervisor.hpp"
#include "scout/virtual/netns.hpp"
#include "scout/virtual/options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::scout {

class VirtualCluster : public OwnCluster {
 public:
  VirtualCluster(VirtualOptions options, std::string programs);

  Status boot(const std::string& directory) override;

  Result<bool> is_up() override;
  Status on_child(pid_t pid, int shell_code) override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::vector<std::string> greeting() const override;
  std::vector<std::string> tear_down() override;

 private:
  [[nodiscard]] DaemonSetup setup_daemons();

  VirtualOptions options_;
  std::optional<NodeNetworks> networks_;
  TimePoint boot_deadline_{};
  std::string page_;  // address of the dashboard; empty: the head has no web server
  bool is_up_ = false;
};

}  // namespace score::scout
