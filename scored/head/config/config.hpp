#pragma once
// This header declares the table [head] of the configuration file. See scored.toml(5).

#include "base/limits.hpp"
#include "base/model/settings.hpp"
#include "base/os/log.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "gang/control/tree.hpp"
#include "gang/head/cluster.hpp"
#include "monitor/model/settings.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/head/config/accounts.hpp"
#include "scored/head/config/licenses.hpp"
#include "scored/head/config/notify_config.hpp"
#include "scored/head/config/partitions.hpp"
#include "scored/head/config/user_limits.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/etcd/lease_config.hpp"
#include "scored/shared/config/hooks_config.hpp"
#include "scored/shared/config/memory_config.hpp"
#include "scored/shared/config/network_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::head {

struct HeadConfig {
  std::string file;  // the file that was read
  std::string cluster = "cluster";
  std::vector<std::string> configured_nodes;     // from the hostlist "nodes"; at least one
  std::vector<std::string> nodes;                // the same with what NodeChanges has
  proto::TcpEndpoint listen{"127.0.0.1", 7421};  // for nodes; port 0: any free port, see run_dir
  std::vector<proto::TcpEndpoint> heads;         // with two heads: where they listen for nodes
  std::uint32_t self = 0;                        // index of this head in `heads`
  std::vector<std::string> witnesses;            // of the two heads; empty: the configured nodes
  LeaseConfig lease;                             // where two heads keep their lease
  std::vector<std::string> login_nodes;          // trusted to name their users
  std::string run_dir = "/run/scored";           // contains head.sock and head.port
  std::string socket;                            // for commands; empty: <run_dir>/head.sock
  std::string state_dir = "/var/lib/scored";
  std::string key_file = "/etc/scored/key";
  OperatorRule operators{{}, "scored-admin"};
  bool virtual_cluster = false;  // only shown by commands
  LogLevel log_level = LogLevel::Notice;
  monitor::MonitorSettings monitor;

  Settings settings;           // what operators may change while jobs run
  bool switch_always = false;  // also between slices of the same jobs
  bool requeue = false;        // requeue jobs that lost a node, unless the job says otherwise
  std::vector<Queue> fill_queues{Queue::High, Queue::Normal};  // the queues whose jobs may fill
  gang::Placement placement = gang::Placement::Matrix;
  Duration long_limit = gang::ClusterConfig::kDefaultLongLimit;
  Duration long_shared = std::chrono::hours{1};
  Duration long_early = gang::ClusterConfig::kDefaultLongEarly;
  std::uint32_t long_slots = 1;
  std::uint32_t long_weight = 48;
  Duration front_end_grace = 10s;                      // time for a lost front end to reconnect
  Duration kill_grace = limits::kKillGrace;            // from SIGTERM to SIGKILL, by default
  Duration launch_deadline = limits::kLaunchDeadline;  // until all nodes have prepared a job
  Duration kill_deadline = 5s;   // a node that takes longer to kill a job becomes suspect
  Duration rejoin_grace = 10s;   // time for nodes to reconnect after a restart
  Duration deadlock_after = 5s;  // how long every task of a job must wait for messages
  Duration node_timeout = 30s;   // a node that is silent for longer loses its jobs
  Duration idle_timeout = 600s;  // of a command that watches nothing
  Duration write_timeout = limits::kWriteDeadline;  // of a command that reads nothing
  bool control_over_pm = true;  // datagrams between daemons; false: everything over TLS
  std::uint32_t control_fanout = gang::Tree::kDefaultFanout;  // maximum, of the daemons' tree
  NetworkConfig network;
  UserLimits limits;  // what users may ask for
  AccountRules accounts;
  HooksConfig hooks;
  NotifyConfig notify;
  PartitionRules partitions;
  LicenseRules licenses;
  std::vector<gang::Switch> topology;  // sound; empty: all nodes are near each other
  MemoryConfig memory;

  [[nodiscard]] bool has_two_heads() const { return heads.size() == 2; }

  [[nodiscard]] gang::ClusterConfig for_cluster() const;

  // Returns the groups whose members may use accounts and partitions, without the '@'.
  [[nodiscard]] std::vector<std::string> user_groups() const;
};

// Both functions return all problems as one error; its lines are "file:line: key: why".
[[nodiscard]] Result<HeadConfig> load_config(const std::string& path);
[[nodiscard]] Result<HeadConfig> parse_config(std::string_view text, const std::string& name);

// Checks that a running head can take over the new configuration; one error names all keys that it
// cannot change.
[[nodiscard]] Status check_reload(const HeadConfig& running, const HeadConfig& wanted);

}  // namespace score::head
