#include "scored/node/facts.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "scored/shared/facts/host_facts.hpp"

namespace score::node {
namespace {

// The controller cpuset is not listed: facts.confinement reports whether tasks are kept on the
// cores of their job, in either version.
void add_controllers(const NodeConfig& config, const JobCgroups& cgroups, wire::HostFacts& facts) {
  const auto controllers = read_file(cgroups.root() + "/cgroup.controllers", 4096);
  for (const auto word : split(controllers ? trim(*controllers) : std::string_view(), ' ')) {
    if (!word.empty() && word != "cpuset") facts.add_controllers(std::string(word));
  }
  facts.set_confinement(!config.confine_cores         ? wire::HostFacts::NOT_WANTED
                        : cgroups.limits_processors() ? wire::HostFacts::CONFINED
                                                      : wire::HostFacts::IMPOSSIBLE);
}

wire::Switching::Priority to_wire(SwitchPriority priority) {
  switch (priority) {
    case SwitchPriority::RealTime:
      return wire::Switching::REAL_TIME;
    case SwitchPriority::Nice:
      return wire::Switching::NICE;
    case SwitchPriority::None:
      break;
  }
  return wire::Switching::TASKS_LOWERED;
}

void report_confinement(const NodeConfig& config, const JobCgroups* cgroups) {
  if (!config.confine_cores) return log_notice("cores: jobs may use all processors of the node");
  if (cgroups != nullptr && cgroups->limits_processors()) {
    return log_notice("cores: cpuset keeps jobs on their cores");
  }
  log_notice(
      "cores: jobs start on their cores but can leave them, because there is no cpuset controller");
}

void report_fill_control(const JobCgroups* cgroups) {
  if (cgroups == nullptr) return log_notice("fill: not available: the node has no cgroups");
  switch (cgroups->fill_control()) {
    case FillControl::Unified:
      return log_notice("fill: cpu.idle of cgroup v2");
    case FillControl::Version1:
      return log_notice("fill: cpu.idle of the v1 cpu hierarchy");
    case FillControl::None:
      log_notice(fmt::format("fill: not available: {}", cgroups->why_no_fill()));
  }
}

}  // namespace

wire::Switching describe_switching(bool has_cgroups, SwitchPriority priority) {
  wire::Switching switching;
  switching.set_method(has_cgroups ? wire::Switching::FREEZER : wire::Switching::SIGNALS);
  switching.set_priority(to_wire(priority));
  return switching;
}

wire::HostFacts collect_facts(const NodeConfig& config, const JobCgroups* cgroups) {
  wire::HostFacts facts = facts::of_this_host();
  if (!config.file.empty()) facts::add_file(facts, wire::FileFact::CONFIGURATION, config.file);
  facts::add_file(facts, wire::FileFact::KEY, config.key_file);
  facts::add_file(facts, wire::FileFact::LAUNCHER_SOCKET, config.launcher_dir + "/launcher.sock");
  if (!config.login_socket.empty()) {
    facts::add_file(facts, wire::FileFact::COMMAND_SOCKET, config.login_socket);
  }
  facts.set_probe(find_beside("scored-probe", {".", "../libexec/scored"}));
  if (cgroups == nullptr) return facts;
  facts.set_cgroup(cgroups->root());
  facts.set_limits_memory(cgroups->limits_memory());
  facts.set_why_no_fill(cgroups->why_no_fill());
  add_controllers(config, *cgroups, facts);
  return facts;
}

void report_core_control(const NodeConfig& config, const JobCgroups* cgroups) {
  report_confinement(config, cgroups);
  report_fill_control(cgroups);
}

}  // namespace score::node
