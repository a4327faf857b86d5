// A file without the key `heads` is not parsed, because most clusters have one head and commands
// should start fast. The daemons check the file; a command does not fail because of an error in it.
#include "scout/session/installed_cluster.hpp"

#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace score::scout {
namespace {

constexpr const char* kHeadRunDir = "/run/scored";
constexpr const char* kNodeRunDir = "/run/scored-node";
constexpr std::size_t kHeads = 2;

bool names_heads(std::string_view text) {
  return std::ranges::any_of(split(text, '\n'),
                             [](std::string_view line) { return trim(line).starts_with("heads"); });
}

std::string socket_of(ConfigSection section, std::string_view key, std::string run_dir,
                      std::string_view name) {
  section.read("run_dir", run_dir);
  std::string socket = fmt::format("{}/{}", run_dir, name);
  section.read(key, socket);
  return socket;
}

// A comma separates sockets in a list, so a path with a comma is not accepted.
bool is_path(const std::string& path) {
  return path.starts_with('/') && path.find(',') == path.npos;
}

}  // namespace

InstalledCluster parse_installed(std::string_view text) {
  if (!names_heads(text)) return {};
  auto file = ConfigFile::parse(text, kConfigurationFile);
  if (!file) return {};
  ConfigSection head = file->root().section("head");
  ConfigSection node = file->root().section("node");
  InstalledCluster cluster;
  node.read("heads", cluster.heads);
  head.read("heads", cluster.heads);
  if (cluster.heads.size() != kHeads) return {};
  for (auto& socket : {socket_of(head, "socket", kHeadRunDir, "head.sock"),
                       socket_of(node, "login_socket", kNodeRunDir, "commands.sock"),
                       std::string(kDefaultSocket)}) {
    const bool is_new = std::ranges::find(cluster.sockets, socket) == cluster.sockets.end();
    if (is_new && is_path(socket)) cluster.sockets.push_back(socket);
  }
  return cluster;
}

InstalledCluster read_installed() {
  const auto text = read_file(kConfigurationFile, limits::kMaxConfigBytes);
  return text ? parse_installed(*text) : InstalledCluster();
}

}  // namespace score::scout
