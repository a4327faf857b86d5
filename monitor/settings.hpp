#pragma once
// The table [monitor] of the configuration, the same for head and nodes. See scored.toml(5).

#include "base/config.hpp"
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
  std::optional<ListenAddress> listen = ListenAddress{"127.0.0.1", 0};  // of the head; none: off
  std::optional<ListenAddress> node_listen;  // of a node, /metrics alone; none: off
  std::vector<std::string> names;            // "cluster.example.org:8443": how proxies call us
  bool is_private = false;
  std::string web_dir = "auto";  // of the page; auto: installed beside the program
  std::string certificate, key;  // PEM
  std::string token_file;

  friend bool operator==(const MonitorSettings&, const MonitorSettings&) = default;
};

// Leaves what is wrong with the section.
void read_settings(ConfigSection& section, MonitorSettings& settings);

// "127.0.0.1:0", "[::1]:8080". Errors: Malformed.
[[nodiscard]] Result<ListenAddress> parse_listen(std::string_view text);

// Where "auto" is: share/scored/web beside the directory of this program.
[[nodiscard]] std::string page_directory(const MonitorSettings& settings);

// The first line of the file: 0600 or 0400, 16 to 256 printable characters. Errors: Denied (mode),
// Malformed, errno codes.
[[nodiscard]] Result<std::string> load_token(const std::string& path);

}  // namespace score::monitor
