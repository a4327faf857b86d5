// Finds the hosts of a new cluster: from options, else from the allocation of a batch system.
#pragma once

#include "base/result.hpp"
#include "scout/start/plan/allocation.hpp"
#include "scout/start/plan/hosts.hpp"

#include <string>
#include <vector>

namespace score::scout {

struct HostSource {
  std::string list;  // --hosts
  std::string file;  // --hostfile
};

struct FoundHosts {
  std::vector<Host> hosts;
  Via via = Via::Ssh;
  std::string own_address{};  // of this host, not a loopback address; empty: unknown
  std::string memory{};       // per host for jobs; empty: all
};

// Returns the hosts of the options, which are reached by ssh, else those of the allocation. Errors:
// NotFound without any host; those of the parsers, which name the source.
Result<FoundHosts> find_hosts(const HostSource& source);

}  // namespace score::scout
