#include "scout/start/plan/daemon_configs.hpp"

#include "base/text/hostlist.hpp"

#include <fmt/core.h>

namespace score::scout {

// The head listens on all interfaces, because only a host knows which one leads to it. Nodes must
// prove their key.
std::string head_config(const Layout& layout, const HeadSetup& setup) {
  auto text =
      fmt::format("[head]\ncluster = \"{}\"\nnodes = \"{}\"\nlisten = \"{}:{}\"\n",
                  kStartedClusterName, compress_hostlist(setup.nodes), setup.listen, setup.port);
  text += fmt::format("run_dir = \"{0}\"\nstate_dir = \"{0}\"\nkey_file = \"{1}\"\n",
                      layout.state_of("head"), layout.key());
  if (!setup.slice.empty()) text += fmt::format("quantum = \"{}\"\n", setup.slice);
  if (setup.slots != 0) text += fmt::format("slots = {}\n", setup.slots);
  if (!setup.node_timeout.empty())
    text += fmt::format("node_timeout = \"{}\"\n", setup.node_timeout);
  return text + setup.hooks;
}

std::string node_config(const Layout& layout, const Orders& orders, const std::string& head_host) {
  const bool is_ipv6 = head_host.find(':') != head_host.npos;
  const auto run_dir = layout.state_of(kNodeDaemon);
  auto text =
      fmt::format("[node]\ncluster = \"{}\"\nname = \"{}\"\n", kStartedClusterName, orders.node);
  text += fmt::format("head = \"{}:{}\"\n", is_ipv6 ? "[" + head_host + "]" : head_host,
                      orders.head_port);
  text +=
      fmt::format("run_dir = \"{0}\"\nlauncher_dir = \"{0}\"\nkey_file = \"{0}/key\"\n", run_dir);
  const auto cgroup = layout.cgroup_of(kNodeDaemon);
  text += fmt::format("cgroup_root = \"{}\"\n", cgroup.empty() ? "none" : cgroup);
  if (cgroup.empty()) text += "method = \"signal\"\n";
  if (orders.cores != 0) text += fmt::format("cores = {}\n", orders.cores);
  if (!orders.memory.empty()) text += fmt::format("memory = \"{}\"\n", orders.memory);
  return text + orders.hooks;
}

}  // namespace score::scout
