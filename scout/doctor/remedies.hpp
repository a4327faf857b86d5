// Holds the remedies that depend on who started the daemons: units of systemd, or a command of one
// user (score virtual, score start).
#pragma once

#include "proto/client.pb.h"
#include "scout/cluster/layout.hpp"

namespace score::scout {

struct Remedies {
  const char* no_head;       // no head answers
  const char* standby_down;  // the second head is not ready
  const char* node_down;
  const char* node_late;
  const char* node_stopped;
  const char* launcher_down;
  const char* no_cgroup;
  const char* no_memory_controller;
  const char* no_cpuset_controller;
  const char* no_priority;
  const char* low_memlock;
  const char* no_pm;
  const char* slow_pair;
};

inline constexpr Remedies kInstalledRemedies{
    .no_head = "on the head, systemctl status scored-head and journalctl -u scored-head",
    .standby_down = "on its host, systemctl status scored-head and journalctl -u scored-head",
    .node_down =
        "there, systemctl status scored-node and journalctl -u scored-node; if it runs, "
        "`score doctor` there tests the connection to the head",
    .node_late = "nothing, if it is only overloaded; otherwise journalctl -u scored-node there",
    .node_stopped = "journalctl -u scored-node there; its main loop is late or stopped",
    .launcher_down = "systemctl restart scored-launcher",
    .no_cgroup =
        "boot with systemd.unified_cgroup_hierarchy=1, and start the daemon by its unit, "
        "which has its jobs in scored-jobs.service",
    .no_memory_controller = "remove it from cgroup_disable= and from version 1 hierarchies",
    .no_cpuset_controller =
        "remove it from cgroup_disable=, or set confine_cores = \"off\" in [node]",
    .no_priority =
        "start the daemon by its unit, which has LimitRTPRIO=20; in a container without "
        "CAP_SYS_RESOURCE, CapabilityBoundingSet=CAP_SYS_NICE and AmbientCapabilities=CAP_SYS_NICE",
    .low_memlock =
        "LimitMEMLOCK=infinity in scored-launcher.service (systemctl edit), then restart it",
    .no_pm = "see [network] of scored.toml and journalctl -u scored-node there",
    .slow_pair =
        "if it stays so in a second run, look for errors of the link (ethtool -S) and for "
        "load from other programs",
};

inline constexpr Remedies kOwnRemedies{
    .no_head =
        "start that cluster again, or name the socket of a running one by --server or "
        "SCORED_SERVER",
    .standby_down = "see its file in log in the directory of the cluster",
    .node_down =
        "see its file in log in the directory of the cluster, then start the cluster again",
    .node_late =
        "nothing, if it is only overloaded; otherwise see its file in log in the directory "
        "of the cluster",
    .node_stopped = "its main loop is late or stopped; start the cluster again",
    .launcher_down = "start the cluster again",
    .no_cgroup =
        "good enough for trials; for cgroups, start the cluster as root where /sys/fs/cgroup "
        "is writable, or in systemd-run --user --scope -p Delegate=yes",
    .no_memory_controller = "good enough for trials; for limits use an installed cluster",
    .no_cpuset_controller = "good enough for trials; for limits use an installed cluster",
    .no_priority =
        "good enough for trials; for measurements start the cluster after ulimit -r 20, "
        "in a container with --ulimit rtprio=20",
    .low_memlock =
        "start the cluster after ulimit -l unlimited, in a container with --ulimit "
        "memlock=-1",
    .no_pm = "see its file in log in the directory of the cluster",
    .slow_pair =
        "usual where virtual nodes share processors; on other hosts look for errors of the "
        "link (ethtool -S) and for load from other programs",
};

// Returns the remedies for this kind of cluster.
inline const Remedies& remedies_for(const wire::Info& info) {
  const bool is_own = info.virtual_cluster() || info.cluster() == kStartedClusterName;
  return is_own ? kOwnRemedies : kInstalledRemedies;
}

}  // namespace score::scout
