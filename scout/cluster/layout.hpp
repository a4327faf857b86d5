// Defines the paths of a cluster.
#pragma once

#include <cstdint>
#include <string>

namespace score::scout {

inline constexpr const char* kStartedClusterName = "start";  // of score start

// Returns "head"; "head2" for the second one in a cluster with two heads.
inline std::string head_name(std::uint32_t index) {
  return index == 0 ? "head" : "head2";
}

inline bool is_head(const std::string& daemon) {
  return daemon == "head" || daemon == "head2";
}

// Holds paths and addresses of one cluster; all follow from its directory and two numbers.
struct Layout {
  static constexpr const char* kScratchName = "scratch";

  std::string directory;     // private, for this cluster only
  std::string programs;      // directory of score, scored, scored-launcher, scored-shepherd
  std::string head_address;  // IPv4
  std::uint16_t head_port = 0;
  std::string cgroup;  // empty: none
  std::uint32_t heads = 1;

  [[nodiscard]] std::string socket() const { return directory + "/head/head.sock"; }

  // Returns the sockets for commands: those of both heads, with a comma between.
  [[nodiscard]] std::string servers() const {
    return heads == 1 ? socket() : socket() + "," + state_of(head_name(1)) + "/head.sock";
  }

  [[nodiscard]] std::string key() const { return directory + "/key"; }

  // Returns a directory for each node's scratch, or a link to one elsewhere.
  [[nodiscard]] std::string scratch() const { return directory + "/" + kScratchName; }

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
