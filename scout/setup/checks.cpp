#include "scout/setup/checks.hpp"

#include "base/text.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace score::scout {
namespace {

constexpr Duration kMostClockDifference =
    60s;  // chosen so that file times and accounting stay useful
constexpr std::uint32_t kFrameOverhead = 76;  // per PM frame in UDP: docs/reference/pm.md
constexpr std::size_t kMostNamed = 8;         // users named in one line

using HostFindings = std::vector<HostFinding>;

void check_name(const HostState& host, const ClusterFacts& cluster, HostFindings& found) {
  if (host.name == cluster.node) return;
  found.push_back({true, fmt::format("this host is called {}, and the token is for {}: run the "
                                     "command on {}, or add --name {}",
                                     host.name, cluster.node, cluster.node, cluster.node)});
}

void check_cgroups(const HostState& host, HostFindings& found) {
  if (!host.has_unified_cgroups) {
    found.push_back({true,
                     "cgroup version 2 is not mounted on /sys/fs/cgroup: boot with the kernel "
                     "parameter systemd.unified_cgroup_hierarchy=1"});
    return;
  }
  for (const auto& [controller, use] : {std::pair{"memory", "--mem of jobs is not enforced"},
                                        std::pair{"cpu", "jobs cannot fill (scadm set fill)"}}) {
    if (std::ranges::find(host.cgroup_controllers, controller) != host.cgroup_controllers.end()) {
      continue;
    }
    found.push_back(
        {false, fmt::format("the cgroup controller {} is missing, so {}: remove it from "
                            "cgroup_disable= and from version 1 hierarchies",
                            controller, use)});
  }
}

void check_clock(const HostState& host, HostFindings& found) {
  const Duration off = host.ahead_of_head < Duration{0} ? -host.ahead_of_head : host.ahead_of_head;
  if (off - host.clock_error < kMostClockDifference) return;
  found.push_back({true, fmt::format("the clock is {} s {} the head's: set it, for example with "
                                     "timedatectl set-ntp true, and run the command again",
                                     std::chrono::duration_cast<std::chrono::seconds>(off).count(),
                                     host.ahead_of_head > Duration{0} ? "ahead of" : "behind")});
}

void check_network(const HostState& host, const ClusterFacts& cluster, HostFindings& found) {
  if (cluster.payload_bytes == 0 || host.mtu == 0) return;
  if (host.mtu >= cluster.payload_bytes + kFrameOverhead) return;
  found.push_back(
      {true, fmt::format("interface {} has an MTU of {} bytes, too small for frames of {}: set "
                         "payload = {} in [network] of the head's scored.toml and restart the head",
                         host.interface, host.mtu, cluster.payload_bytes,
                         host.mtu - std::min(host.mtu, kFrameOverhead))});
}

void check_users(const HostState& host, HostFindings& found) {
  std::vector<std::string> missing;
  for (const auto& [user, here] : host.users) {
    const std::string name = escape_terminal(user.name, 40);
    if (!here) {
      missing.push_back(fmt::format("{} ({})", name, user.uid));
    } else if (*here != user.uid) {
      found.push_back(
          {true, fmt::format("user {} has uid {} here and {} on the head: give the user "
                             "the same number on all hosts",
                             name, *here, user.uid)});
    }
  }
  if (missing.empty()) return;
  const std::size_t count = missing.size();
  if (count > kMostNamed) missing.resize(kMostNamed);
  found.push_back(
      {true, fmt::format("{} of the head's users are missing here: {}{}: make them with "
                         "the same numbers, or add --ignore-users",
                         count, fmt::join(missing, ", "), count > kMostNamed ? ", ..." : "")});
}

}  // namespace

std::vector<HostFinding> check_host(const HostState& host, const ClusterFacts& cluster) {
  HostFindings found;
  check_name(host, cluster, found);
  check_cgroups(host, found);
  check_clock(host, found);
  check_network(host, cluster, found);
  check_users(host, found);
  return found;
}

}  // namespace score::scout
