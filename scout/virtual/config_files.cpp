#include "scout/virtual/config_files.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/transport/key.hpp"
#include "scout/cluster/registry.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <unistd.h>
#include <vector>

namespace score::scout {

namespace {

std::string network_config(const VirtualOptions& options) {
  const auto colon = options.device.find(':');
  const auto device = options.device.substr(0, colon);
  const auto provider = colon == options.device.npos ? "tcp" : options.device.substr(colon + 1);
  const auto link = device == "ofi" ? "ofi:" + provider : device;
  const std::vector<std::string> more(options.links - 1, link + (options.netns ? ":eth0" : ""));
  std::string text = fmt::format("[network]\ndevices = [\"shmem\", \"{}\"]\n", device);
  if (device == "ofi") text += fmt::format("provider = \"{}\"\n", provider);
  if (!more.empty()) text += fmt::format("links = [\"{}\"]\n", fmt::join(more, "\", \""));
  text += fmt::format("channels = {}\n", options.channels);
  text += fmt::format("payload = {}\n", options.payload);
  text += fmt::format("switch_mode = \"{}\"\n", options.switch_mode);
  if (options.netns) text += "interface = \"eth0\"\n";
  return text;
}

std::string two_heads(const Layout& layout) {
  return fmt::format("heads = [\"{0}:{1}\", \"{0}:{2}\"]\n", layout.head_address, layout.head_port,
                     layout.head_port + 1);
}

std::string head_config(const Layout& layout, const VirtualOptions& options, std::uint32_t index) {
  const auto nodes = node_names(options.nodes);
  std::string text = "[head]\ncluster = \"virtual\"\nvirtual = true\n";
  text += fmt::format("nodes = \"{}\"\n", compress_hostlist(nodes));
  text += fmt::format("listen = \"{}:{}\"\n", layout.head_address, layout.head_port + index);
  if (options.heads > 1) {
    text += two_heads(layout);
    text += fmt::format("login_nodes = \"{}\"\n", compress_hostlist(nodes));
  }
  text += fmt::format("control = \"{}\"\n", options.control);
  text += fmt::format("run_dir = \"{}\"\n", layout.state_of(head_name(index)));
  text += fmt::format("state_dir = \"{}\"\n", layout.state_of(head_name(index)));
  text += fmt::format("key_file = \"{}\"\n", layout.key());
  text +=
      fmt::format("quantum = \"{}\"\nslots = {}\n", format_duration(options.slice), options.slots);
  if (options.node_timeout > Duration{0})
    text += fmt::format("node_timeout = \"{}\"\n", format_duration(options.node_timeout));
  text += fmt::format("placement = \"{}\"\n", options.placement);
  if (options.switch_always) text += "switch_always = true\n";
  return text + network_config(options);
}

// All nodes have the same path, as the hosts of a cluster should, so files on a job's volume have
// one name everywhere.
std::string scratch_root(const Layout& layout, const VirtualOptions& options) {
  if (options.scratch_directory.empty()) return layout.scratch();
  const std::string name = std::filesystem::path(layout.directory).filename();
  return fmt::format("{}/{}", options.scratch_directory, name);
}

// Several users may have scratch in a cluster of root, and each user's files are private.
constexpr mode_t kScratchMode = 0755;

// If the scratch root is elsewhere, a link in the cluster's directory leads to it, so that it is
// removed with the cluster.
Status make_scratch(const Layout& layout, const VirtualOptions& options) {
  const std::string root = scratch_root(layout, options);
  auto status = make_directory(root, kScratchMode);
  if (status && root != layout.scratch() && symlink(root.c_str(), layout.scratch().c_str()) != 0) {
    return fail(errno_code(errno), "cannot create the link {}", layout.scratch());
  }
  return status;
}

std::string scratch_config(const Layout& layout, const VirtualOptions& options) {
  return fmt::format("[pario]\npath = \"{}\"\ncapacity = \"{}\"\n", scratch_root(layout, options),
                     options.scratch);
}

std::string node_config(const Layout& layout, const VirtualOptions& options,
                        const std::string& name, std::uint32_t first_core,
                        const std::string& added) {
  std::string text = fmt::format("[node]\ncluster = \"virtual\"\nname = \"{}\"\n", name);
  if (options.heads > 1) {
    text += two_heads(layout);
  } else {
    text += fmt::format("head = \"{}:{}\"\n", layout.head_address, layout.head_port);
  }
  text += fmt::format("run_dir = \"{0}\"\nlauncher_dir = \"{0}\"\n", layout.state_of(name));
  text += fmt::format("key_file = \"{}/key\"\n", layout.state_of(name));
  text += fmt::format("cores = {}\nfirst_core = {}\nmemory = \"{}\"\n", options.cores, first_core,
                      options.memory);
  if (shares_processors(options)) text += "confine_cores = \"off\"\n";
  text += fmt::format("cgroup_root = \"{}\"\n",
                      layout.cgroup.empty() ? "none" : layout.cgroup_of(name));
  text += added;
  if (added.find("[pario]") == added.npos) text += scratch_config(layout, options);
  if (options.node_metrics) text += "[monitor]\nnode_listen = \"127.0.0.1:0\"\n";
  return text + network_config(options);
}

// Assigns the host's processors to the nodes in turn. Each further round begins one processor
// later, so that the first cores differ even for nodes as large as the host.
std::uint32_t first_core(const VirtualOptions& options, std::uint32_t index) {
  const std::uint32_t processors = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t first = index * options.cores;
  return (first + first / processors) % processors;
}

// Returns the text that --hooks adds for every daemon.
Result<std::string> hooks_config(const VirtualOptions& options) {
  if (options.hooks.empty()) return std::string();
  auto lines = read_file(options.hooks, limits::kMaxConfigBytes);
  if (!lines) return lines.error().with_context("--hooks");
  return *lines + "\n";
}

// Returns the text that --node-config and --hooks add for the node.
Result<std::string> added_config(const VirtualOptions& options, const std::string& node) {
  std::string text;
  for (const std::string& word : options.node_config) {
    const auto equals = word.find('=');
    const auto nodes = expand_hostlist(word.substr(0, equals));
    if (equals == word.npos || !nodes) {
      return fail(Errc::Malformed, "--node-config '{}': use NODES=FILE", escape_terminal(word, 80));
    }
    if (std::ranges::find(*nodes, node) == nodes->end()) continue;
    const auto lines = read_file(word.substr(equals + 1), limits::kMaxConfigBytes);
    if (!lines) return lines.error().with_context("--node-config");
    text += *lines + "\n";
  }
  const auto hooks = hooks_config(options);
  if (!hooks) return hooks.error();
  return text + *hooks;
}

Status write_node(const Layout& layout, const VirtualOptions& options,
                  const proto::Key& cluster_key, std::uint32_t index) {
  const auto name = node_names(options.nodes)[index];
  auto status = make_directory(layout.state_of(name));
  if (status) status = make_directory(layout.state_of(name) + "/shepherds");
  if (status) {
    status =
        proto::store_key(layout.state_of(name) + "/key", proto::derive_node_key(cluster_key, name));
  }
  if (!status) return status;
  const auto added = added_config(options, name);
  if (!added) return added.error();
  return replace_file(layout.config_of(name),
                      node_config(layout, options, name, first_core(options, index), *added), 0600);
}

}  // namespace

Status write_configuration(const Layout& layout, const VirtualOptions& options) {
  if (auto status = make_directory(layout.state_of("log")); !status) return status;
  const auto hooks = hooks_config(options);
  if (!hooks) return hooks.error();
  for (std::uint32_t index = 0; index < options.heads; ++index) {
    if (auto made = make_directory(layout.state_of(head_name(index))); !made) return made;
    auto written = replace_file(layout.config_of(head_name(index)),
                                head_config(layout, options, index) + *hooks, 0600);
    if (!written) return written;
  }
  if (auto status = make_scratch(layout, options); !status) return status;
  const auto key = proto::random_key();
  auto status = proto::store_key(layout.key(), key);
  for (std::uint32_t index = 0; index < options.nodes && status; ++index) {
    status = write_node(layout, options, key, index);
  }
  return status;
}

}  // namespace score::scout
