// Named volumes: descriptions in a directory of the user, servers on a list of hosts.
#pragma once

#include "pario/core/volume_file.hpp"

#include <string>
#include <vector>

namespace score::pario {

struct NewVolume {
  std::string name;
  std::vector<std::string> addresses;  // HOST:PORT of servers that are started by hand; or:
  std::vector<std::string> hosts;      // where servers are started
  std::uint32_t servers = 0;           // 0: one per host
  std::uint32_t port = 7'711;          // of the first server; the others have the next ones
  std::string directory;               // on the hosts; each server makes one below it
  std::string launcher = "ssh";        // starts a command on another host
  std::string size;
  std::string stripe;
  std::string replicas;
  std::string expires;  // a time to live such as 7d, or seconds since 1970
  std::string transport;
};

// All of these throw std::string: what failed, for people.

// The text of the description, with a fresh key.
std::string describe(const NewVolume& wanted);
// Stores the description and starts the servers. If one does not start, the others are removed, and
// the description too.
void create_named(const NewVolume& wanted);
// Starts those servers of the volume that do not run.
void start_named(const std::string& name, const std::string& launcher);
// One line per volume.
void list_named();
// Of one volume.
void print_named(const std::string& name);
// The servers end and remove what they have; then the description goes. `force`: also if a server
// cannot be reached.
void destroy_named(const std::string& name, bool force);

}  // namespace score::pario
