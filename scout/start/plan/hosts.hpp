// Parses the hosts of a cluster, from a list on the command line or a host file.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct Host {
  std::string target;       // for ssh: "node01", "user@node01"
  std::string node;         // name of the node in the cluster: the target without its user
  std::uint32_t slots = 0;  // cores that jobs may use; 0: all

  friend bool operator==(const Host&, const Host&) = default;
};

// Parses "a,b,user@c,node[01-16]". Keeps the order; repeated hosts count once. Errors: Malformed,
// TooLarge, which quote the part.
Result<std::vector<Host>> parse_hosts(std::string_view list);

// Parses one host per line, as Open MPI, MPICH and PBS write it: "a", "a slots=4", "a:4", or "a"
// once per slot. Comments begin with '#'. Errors: Malformed with the line's number, TooLarge.
Result<std::vector<Host>> parse_hostfile(std::string_view text);

}  // namespace score::scout
