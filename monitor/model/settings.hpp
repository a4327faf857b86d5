#pragma once
// MonitorSettings is the table [monitor] of the configuration, the same for head and nodes. See
// scored.toml(5).

#include "base/config/config.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::monitor {

struct ListenAddress {
  std::string host;        // an IP address
  std::uint16_t port = 0;  // 0: any

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

struct MonitorSettings {
  std::optional<ListenAddress> listen = ListenAddress{"127.0.0.1", 0};  // of the head; empty: off
  std::optional<ListenAddress> node_listen;  // of a node, only /metrics; empty: off
  std::vector<std::string> names;  // "cluster.example.org:8443": further names of this server
  std::string public_url;    // "https://cluster.example.org/": address at a proxy; empty: none
  std::string proxy_socket;  // a Unix socket for that proxy; empty: none
  std::string proxy_user;    // only processes of this user may connect there and name the user
  bool has_api = false;      // `listen` serves the API for programs
  std::string api_socket;    // a Unix socket for programs of the head's host; empty: none
  bool is_private = false;
  std::string web_dir = "auto";  // directory of the page; auto: installed next to the program
  std::string certificate, key;  // PEM
  std::string token_file;

  friend bool operator==(const MonitorSettings&, const MonitorSettings&) = default;
};

// Reads the table. Faults are recorded in the section.
void read_settings(ConfigSection& section, MonitorSettings& settings);

// Converts "https://cluster.example.org:8443/" to the lower-case form
// "https://cluster.example.org:8443": only scheme, name and port, as browsers write an Origin.
// Errors: Malformed.
[[nodiscard]] Result<std::string> parse_public_url(std::string_view text);

// Parses "127.0.0.1:0" or "[::1]:8080". Errors: Malformed.
[[nodiscard]] Result<ListenAddress> parse_listen(std::string_view text);

// Returns the directory of the page. "auto" is share/scored/web next to the directory of this
// program.
[[nodiscard]] std::string page_directory(const MonitorSettings& settings);

// Returns the first line of the file: mode 0600 or 0400, 16 to 256 printable characters. Errors:
// Denied (mode), Malformed, errno codes.
[[nodiscard]] Result<std::string> load_token(const std::string& path);

}  // namespace score::monitor
