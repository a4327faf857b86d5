// What scored-setup reads from this host and does to it. Every step can be done again.
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

// Standard output and error of a program, found by PATH. Error: it cannot start, or ends with
// another status than 0; the context has its last line.
Result<std::string> run_program(const std::vector<std::string>& words);

// Root on a host with the daemons' users and this unit ("scored-head.service"). Errors say what to
// install.
Status check_installed(const std::string& unit);

bool exists(const std::string& path);
// The configuration here, else the one that is installed as an example, else an empty text.
Result<std::string> read_configuration();
// Has the daemon check the text, then replaces the file. role: "head" or "node". The old text stays
// where it is when the new one is refused.
Status write_configuration(const std::string& text, const std::string& role);
// Replaces the file and gives it to a daemon's user (base/os/daemon_users.hpp).
Status write_key(const std::string& path, const proto::NumberedKey& key, const char* user);
// A key that belongs to a daemon's user, read by root.
Result<proto::NumberedKey> read_key(const std::string& path);
Status give_to_daemon(const std::string& path, const char* user);

// Enables and (re)starts the unit and waits until it is ready. When it fails, the last lines of its
// journal are in the error, and it is stopped and disabled again.
Status start_unit(const std::string& unit);

// "10.1.0.0/16" of each address of an interface that is up, without loopback and without repeats.
std::vector<std::string> connected_networks();
// Numeric addresses of a host; none if its name is unknown.
std::vector<std::string> addresses_of(const std::string& host);
// Addresses of the name servers in the text of a resolv.conf(5).
std::vector<std::string> name_servers(std::string_view resolv_conf);
// Lets the daemon of this unit exchange packets with the connected networks and those in `more`:
// writes a drop-in, which counts when the unit starts.
Status admit_networks(const std::string& unit, const std::vector<std::string>& more);
bool is_port_free(std::uint16_t port);

// All of HostState but the clock. `address`: an address of the head.
HostState read_host(const std::string& address, const std::vector<NamedUser>& users);

}  // namespace score::scout
