#include "base/os.hpp"

namespace score::inline base {

namespace {

// Opens the cgroup and does one thing with it.
template <typename Action>
auto with_cgroup(const std::string& path, Action action)
    -> decltype(action(std::declval<Cgroup&>())) {
  auto cgroup = Cgroup::open(path);
  if (!cgroup) return cgroup.error();
  return action(*cgroup);
}

}  // namespace

std::expected<SpawnedProcess, SpawnFailure> RealProcesses::spawn(const SpawnSpec& spec) {
  return base::spawn(spec);
}

Status RealProcesses::send_signal(int pidfd, int signal) {
  return base::send_signal(pidfd, signal);
}

Result<std::optional<ExitStatus>> RealProcesses::reap(int pidfd, bool block) {
  return base::reap(pidfd, block);
}

Status RealCgroupFiles::create(const std::string& path) {
  const auto made = Cgroup::create(path);
  if (!made) return made.error();
  return {};
}

Status RealCgroupFiles::remove(const std::string& path) {
  return remove_cgroup_tree(path);
}

Status RealCgroupFiles::freeze(const std::string& path, bool on) {
  return with_cgroup(path, [on](Cgroup& cgroup) { return cgroup.freeze(on); });
}

Status RealCgroupFiles::kill(const std::string& path) {
  return with_cgroup(path, [](Cgroup& cgroup) { return cgroup.kill(); });
}

Status RealCgroupFiles::write(const std::string& path, std::string_view file,
                              std::string_view text) {
  return with_cgroup(path, [&](Cgroup& cgroup) { return cgroup.write(file, text); });
}

Result<CgroupEvents> RealCgroupFiles::events(const std::string& path) {
  return with_cgroup(path, [](Cgroup& cgroup) { return cgroup.events(); });
}

Result<HostFacts> RealHost::facts() {
  return read_host_facts();
}

}  // namespace score::inline base
