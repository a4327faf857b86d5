#include "scout/cluster/cluster_cgroup.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "scout/cluster/reaper.hpp"
#include "scout/cluster/registry.hpp"

#include <filesystem>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

bool may_use(const std::string& cgroup) {
  auto group = Cgroup::open(cgroup);
  if (!group) return false;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto added = group->add(child);
  const auto killed = group->kill();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return added && killed;
}

}  // namespace

Status make_cluster_cgroup(Layout& layout, const std::vector<std::string>& nodes) {
  const auto base = geteuid() == 0 ? find_cgroup2_mount() : own_cgroup();
  if (!base) return {};
  const auto id = std::filesystem::path(layout.directory).filename().native();
  const std::string path = *base + "/" + kCgroupPrefix + id;
  if (auto made = Cgroup::create(path); !made) return {};
  if (auto written = replace_file(layout.directory + "/" + kCgroupFile, path, 0600); !written)
    return written;
  if (!may_use(path)) {
    clear_cgroup(path);
    return {};
  }
  layout.cgroup = path;
  for (const auto& node : nodes) {
    if (auto made = Cgroup::create(layout.cgroup_of(node)); !made) return made.error();
  }
  return {};
}

}  // namespace score::scout
