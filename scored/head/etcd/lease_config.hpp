#pragma once
// LeaseConfig is the table [heads]: where two heads keep the lease that says which of them is in
// charge. See scored.toml(5) and docs/adr/0138.

#include "base/config/config.hpp"
#include "base/result.hpp"
#include "proto/transport/tls_connection.hpp"

#include <string>
#include <vector>

namespace score::head {

struct LeaseConfig {
  std::vector<proto::TcpEndpoint> etcd;  // members of the etcd cluster; empty: nodes are witnesses
  std::string prefix = "/scored";        // the key is <prefix>/<cluster>/lease
  std::string ca_file;                   // certificates that sign those of the members
  std::string certificate_file;          // of this head; empty: etcd asks for none
  std::string private_key_file;

  [[nodiscard]] bool is_in_etcd() const { return !etcd.empty(); }

  friend bool operator==(const LeaseConfig&, const LeaseConfig&) = default;
};

// Faults are recorded in the file of `root`.
[[nodiscard]] LeaseConfig read_lease_config(ConfigSection& root);

}  // namespace score::head
