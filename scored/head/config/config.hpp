#pragma once
// What the head reads from its configuration file: the table [head]. See scored.toml(5).

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "gang/control/tree.hpp"
#include "gang/head/cluster.hpp"
#include "monitor/model/settings.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/config/network_config.hpp"
#include "scored/head/config/accounts.hpp"
#include "scored/head/config/user_limits.hpp"
#include "scored/head/config/users.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::head {

struct HeadConfig {
  std::string file;  // it was read from
  std::string cluster = "cluster";
  std::vector<std::string> nodes;                // from the hostlist "nodes"; at least one
  proto::TcpEndpoint listen{"127.0.0.1", 7421};  // for nodes; port 0: any, see run_dir
  std::vector<proto::TcpEndpoint> heads;  // of a cluster with two: where they listen for nodes
  std::uint32_t self = 0;                 // which of them this is
  std::vector<std::string> login_nodes;   // trusted to name their users
  std::string run_dir = "/run/scored";    // head.sock, head.port
  std::string socket;                     // for commands; empty: <run_dir>/head.sock
  std::string state_dir = "/var/lib/scored";
  std::string key_file = "/etc/scored/key";
  OperatorRule operators{{}, "scored-admin"};
  bool virtual_cluster = false;  // shown by commands, nothing else
  LogLevel log_level = LogLevel::Notice;
  monitor::MonitorSettings monitor;

  Duration quantum = limits::kDefaultQuantum;
  std::uint32_t slots = limits::kDefaultSlots;
  std::uint32_t urgent_slots = limits::kDefaultUrgentSlots;  // rows beyond them
  bool switch_always = false;                                // also between slices of the same jobs
  bool requeue = false;            // jobs that lost a node, unless they say
  std::uint32_t max_requeues = 3;  // of one job
  bool idle_detection = true;      // idle jobs give their slices away
  bool fill = false;               // jobs use what the gang in turn leaves
  std::vector<Queue> fill_queues{Queue::High, Queue::Normal};  // ... of these
  gang::Placement placement = gang::Placement::Matrix;
  Duration long_limit = gang::ClusterConfig::kDefaultLongLimit;
  Duration long_shared = std::chrono::hours{1};
  std::uint32_t long_slots = 1;
  std::uint32_t long_weight = 48;
  bool overcommit = true;                              // tasks of a job share cores if they must
  Duration front_end_grace = 10s;                      // a lost front end may come back within it
  Duration kill_grace = limits::kKillGrace;            // SIGTERM to kill, unless the command says
  Duration launch_deadline = limits::kLaunchDeadline;  // all nodes must have prepared a job
  Duration kill_deadline = 5s;   // a node must have killed a job, else: suspect
  Duration rejoin_grace = 10s;   // after a restart nodes come back within it
  Duration deadlock_after = 5s;  // every task of a job waits for messages for this long
  Duration node_timeout = 30s;   // silence of a node that ends its jobs
  Duration idle_timeout = 600s;  // of a command that watches nothing
  Duration write_timeout = limits::kWriteDeadline;  // of a command that reads nothing
  bool control_over_pm = true;  // datagrams between daemons; false: all over TLS
  std::uint32_t control_fanout = gang::Tree::kDefaultFanout;  // of their tree, at most
  NetworkConfig network;
  UserLimits limits;  // what users may ask for
  AccountRules accounts;

  [[nodiscard]] bool has_two_heads() const { return heads.size() == 2; }

  [[nodiscard]] gang::ClusterConfig for_cluster() const;
};

// Errors: one line "file:line: key: why".
[[nodiscard]] Result<HeadConfig> load_config(const std::string& path);
[[nodiscard]] Result<HeadConfig> parse_config(std::string_view text, const std::string& name);

// What a running head cannot change: all such differences as one error.
[[nodiscard]] Status check_reload(const HeadConfig& running, const HeadConfig& wanted);

}  // namespace score::head
