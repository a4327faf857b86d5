// Manages named volumes: descriptions in a directory of the user, servers on a list of hosts.
#pragma once

#include "pario/core/volume_file.hpp"

#include <ctime>
#include <string>
#include <vector>

namespace score::pario {

struct NewVolume {
  std::string name;
  std::vector<std::string> addresses;  // HOST:PORT of servers that are started by hand; otherwise:
  std::vector<std::string> hosts;      // where servers are started
  std::uint32_t servers = 0;           // 0: one server per host
  std::uint32_t port = 7'711;          // of the first server; the others use the following ones
  std::string directory;               // on the hosts; each server creates one below it
  std::string launcher = "ssh";        // starts a command on a remote host
  std::string size;
  std::string stripe;
  std::string replicas;
  std::string expires;  // a time to live such as 7d, or seconds since 1970
  std::string transport;
  std::string layout;  // local or striped
  std::string wait;    // seconds
};

// Returns "2026-11-21 05:41".
std::string local_time(std::time_t time);

// The following functions throw std::string, an error text for users.

// Returns the text of the description, with a fresh key.
std::string describe(const NewVolume& wanted);
// Stores the description and starts the servers. If one does not start, the others and the
// description are removed.
void create_named(const NewVolume& wanted);
// Starts those servers of the volume that do not run.
void start_named(const std::string& name, const std::string& launcher);
// Prints one line per volume.
void list_named();
// Prints the properties of one volume.
void print_named(const std::string& name);
// Stops the servers, which remove their data, and then removes the description. `force`: also if a
// server cannot be reached.
void destroy_named(const std::string& name, bool force);

}  // namespace score::pario
