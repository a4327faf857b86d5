// Holds the node daemon's settings from its configuration file, the table [node], and from its
// command line, which overrides the file. See scored.toml(5).
#pragma once

#include "base/os/log.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "gang/node/node_agent.hpp"
#include "monitor/model/settings.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/shared/config/device_config.hpp"
#include "scored/shared/config/generic_config.hpp"
#include "scored/shared/config/hooks_config.hpp"
#include "scored/shared/config/memory_config.hpp"
#include "scored/shared/config/network_config.hpp"
#include "scored/shared/config/pario_config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::node {

enum class SwitchMethod : std::uint8_t {
  Auto,     // the freezer if there is one
  Freezer,  // cgroup.freeze; the daemon does not start without it
  Signal,   // SIGSTOP and SIGCONT, for one-user clusters
};

enum class PriorityChoice : std::uint8_t { Auto, Normal };

struct NodeConfig {
  std::string file;  // the file it was read from; empty: none
  std::string cluster = "cluster";
  std::string name;                            // empty: the host's name
  proto::TcpEndpoint head{"127.0.0.1", 7421};  // the address at which it listens for nodes
  std::vector<proto::TcpEndpoint> heads{};     // both heads of a cluster with two; else empty
  std::string key_file = "/etc/scored/node.key";
  std::string run_dir = "/run/scored-node";           // contains shepherds/
  std::string launcher_dir = "/run/scored-launcher";  // contains launcher.sock, rings.sock
  std::string login_socket;          // for commands on this host; empty: commands.sock in run_dir
  std::string cgroup_root = "auto";  // "auto", "none" or an absolute path
  std::uint32_t cores = 0;           // 0: those this process may use
  std::uint32_t first_core = 0;  // among those this process may use; for several nodes on one host
  std::vector<std::uint32_t> processors{};  // set by complete(), ascending
  bool confine_cores = true;                // the tasks of a job run only on its cores
  Bytes memory{0};                          // for jobs; 0: all memory of the host
  Bytes job_memory{0};  // limit on this node of a job that requests none; 0: 90 % of the host's
  std::uint32_t job_processes = 10'000;  // limit on this node, threads included
  SwitchMethod method = SwitchMethod::Auto;
  PriorityChoice priority = PriorityChoice::Auto;  // Normal: as if real time were not allowed
  std::uint32_t idle_percent = 1;  // an attempt that uses no more of its time is idle ...
  std::uint32_t idle_slices = 2;   // ... after this many consecutive checks
  bool control_over_pm = true;     // between daemons; false: TLS only
  LogLevel log_level = LogLevel::Notice;
  NetworkConfig network;
  DeviceAccess devices;
  std::vector<std::string> features;   // words that jobs may request
  std::vector<GenericConfig> generic;  // resources that jobs get by number
  ParioConfig pario;
  HooksConfig hooks;
  MemoryConfig jobs_memory;
  monitor::MonitorSettings monitor;

  [[nodiscard]] gang::NodeAgentConfig for_agent() const;
};

// Errors have one line, "file:line: key: why".
[[nodiscard]] Result<NodeConfig> parse_config(std::string_view text, const std::string& name);
[[nodiscard]] Result<NodeConfig> load_config(const std::string& path);

// Holds the command line without the program's name.
struct NodeCommandLine {
  NodeConfig config;  // from the file and the options
  bool check_only = false;
  bool help = false;
};

// Errors have one line about the option or the file.
[[nodiscard]] Result<NodeCommandLine> read_command_line(const std::vector<std::string>& arguments);

// Returns the text of --help.
[[nodiscard]] std::string_view usage();

// Fills in missing values from the host: name, cores, processors, memory. Errors: errno codes.
[[nodiscard]] Status complete(NodeConfig& config);

}  // namespace score::node
