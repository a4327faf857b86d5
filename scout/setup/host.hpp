// Reads facts from this host and changes it for scored-setup. Every step can be repeated.
#pragma once

#include "base/result.hpp"
#include "proto/transport/key_ring.hpp"
#include "scout/setup/checks.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

inline constexpr const char* kConfigFile = "/etc/scored/scored.toml";
inline constexpr const char* kHeadKey = "/etc/scored/key";
inline constexpr const char* kNodeKey = "/etc/scored/node.key";

// Returns standard output and error of a program, found by PATH. Fails if it cannot start, or ends
// with a status other than 0; the context has its last line.
Result<std::string> run_program(const std::vector<std::string>& words);

// Checks that we are root on a host with the daemons' users and this unit ("scored-head.service").
// Errors name what to install.
Status check_installed(const std::string& unit);

bool exists(const std::string& path);
// Returns the configuration of this host, else the installed example, else an empty text.
Result<std::string> read_configuration();
// Runs the daemon to check the text, then replaces the file. `role` is "head" or "node". If the
// daemon refuses the new text, the old one stays.
Status write_configuration(const std::string& text, const std::string& role);
// Replaces the file and makes a daemon's user its owner (base/os/daemon_users.hpp).
Status write_key(const std::string& path, const proto::NumberedKey& key, const char* user);
// Reads, as root, a key that belongs to a daemon's user.
Result<proto::NumberedKey> read_key(const std::string& path);
Status give_to_daemon(const std::string& path, const char* user);

// Enables and (re)starts the unit and waits until it is ready. If that fails, the error has the
// last lines of its journal, and the unit is stopped and disabled again.
Status start_unit(const std::string& unit);

// Returns a network such as "10.1.0.0/16" for each address of an interface that is up, without
// loopback and repeats.
std::vector<std::string> connected_networks();
// Returns the numeric addresses of a host; none if its name is unknown.
std::vector<std::string> addresses_of(const std::string& host);
// Returns the addresses of the name servers in the text of a resolv.conf(5).
std::vector<std::string> name_servers(std::string_view resolv_conf);
// Allows the daemon of this unit to exchange packets with the connected networks and those in
// `more`. It writes a drop-in, which takes effect when the unit starts.
Status admit_networks(const std::string& unit, const std::vector<std::string>& more);
bool is_port_free(std::uint16_t port);

// Returns HostState without the clock. `address` is an address of the head.
HostState read_host(const std::string& address, const std::vector<NamedUser>& users);

}  // namespace score::scout
