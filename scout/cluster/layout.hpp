// The paths of a cluster.
#pragma once

#include <cstdint>
#include <string>

namespace score::scout {

// Paths and addresses of one cluster; all follow from its directory and two numbers.
struct Layout {
  std::string directory;     // private, of this cluster only
  std::string programs;      // directory of score, scored, scored-launcher, scored-shepherd
  std::string head_address;  // IPv4
  std::uint16_t head_port = 0;
  std::string cgroup;  // empty: none

  [[nodiscard]] std::string socket() const { return directory + "/head/head.sock"; }

  [[nodiscard]] std::string key() const { return directory + "/key"; }

  [[nodiscard]] std::string control() const { return directory + "/control"; }

  [[nodiscard]] std::string description() const { return directory + "/cluster.json"; }

  [[nodiscard]] std::string state_of(const std::string& daemon) const {
    return directory + "/" + daemon;
  }

  [[nodiscard]] std::string config_of(const std::string& daemon) const {
    return state_of(daemon) + "/scored.toml";
  }

  [[nodiscard]] std::string log_of(const std::string& daemon) const {
    return directory + "/log/" + daemon;
  }

  [[nodiscard]] std::string cgroup_of(const std::string& daemon) const {
    return cgroup.empty() ? "" : cgroup + "/" + daemon;
  }
};

}  // namespace score::scout
