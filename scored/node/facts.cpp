#include "scored/node/facts.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scored/facts/host_facts.hpp"

namespace score::node {
namespace {

// cpuset is listed where tasks are kept on the cores of their job, by whichever version; a node
// whose jobs may use all its cores lists it in other words, because it misses nothing.
void add_controllers(const NodeConfig& config, const JobCgroups& cgroups, wire::HostFacts& facts) {
  const auto controllers = read_file(cgroups.root() + "/cgroup.controllers", 4096);
  for (const auto word : split(controllers ? trim(*controllers) : std::string_view(), ' ')) {
    if (!word.empty() && word != "cpuset") facts.add_controllers(std::string(word));
  }
  if (!config.confine_cores) {
    facts.add_controllers("cpuset (not used)");
  } else if (cgroups.limits_processors()) {
    facts.add_controllers("cpuset");
  }
}

}  // namespace

wire::HostFacts collect_facts(const NodeConfig& config, const JobCgroups* cgroups) {
  wire::HostFacts facts = facts::of_this_host();
  if (!config.file.empty()) facts::add_file(facts, "configuration", config.file);
  facts::add_file(facts, "key", config.key_file);
  facts::add_file(facts, "launcher socket", config.launcher_dir + "/launcher.sock");
  if (!config.login_socket.empty()) {
    facts::add_file(facts, "command socket", config.login_socket);
  }
  facts.set_probe(facts::find_helper("scored-probe"));
  if (cgroups == nullptr) return facts;
  facts.set_cgroup(cgroups->root());
  facts.set_limits_memory(cgroups->limits_memory());
  facts.set_why_no_fill(cgroups->why_no_fill());
  add_controllers(config, *cgroups, facts);
  return facts;
}

}  // namespace score::node
