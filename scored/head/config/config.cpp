#include "scored/head/config/config.hpp"

#include "base/config/config.hpp"
#include "base/os/host_facts.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "scored/head/config/topology.hpp"
#include "scored/shared/config/tables.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace score::head {
namespace {

// A node that receives nothing asks every member on its way to the head. With a smaller fan-out
// this would take longer than a heartbeat's period on a large cluster; see
// docs/lab/control-tree.md.
constexpr std::uint32_t kLeastFanout = 4;
constexpr std::uint32_t kMostFanout = 128;
// A hook is killed at its time limit; this is for its start and for what is left of it.
constexpr Duration kHookMargin = 5s;
constexpr Duration kMaxGrace = 3600s;
constexpr Duration kMostLongLimit = 24h * 365;
constexpr std::uint32_t kMostLongWeight = 100;

void read_login_nodes(ConfigSection& section, const std::set<std::string>& nodes,
                      HeadConfig& config) {
  std::string text;
  section.read("login_nodes", text);
  if (text.empty()) return;
  auto names = expand_hostlist(text);
  if (!names) return section.refuse("login_nodes", plain_text(names.error()));
  for (const std::string& name : *names) {
    if (!nodes.contains(name)) section.refuse("login_nodes", name + " is not one of the nodes");
  }
  config.login_nodes = *std::move(names);
}

void read_names(ConfigSection& section, HeadConfig& config) {
  std::string nodes;
  section.read("nodes", nodes);
  auto names = expand_hostlist(nodes);
  if (!names) {
    section.refuse("nodes", plain_text(names.error()));
    return;
  }
  config.nodes = std::move(*names);
  config.configured_nodes = config.nodes;
  const std::set<std::string> unique(config.nodes.begin(), config.nodes.end());
  if (config.nodes.empty()) section.refuse("nodes", "name at least one node");
  if (unique.size() != config.nodes.size()) section.refuse("nodes", "a node is named twice");
  read_login_nodes(section, unique, config);
  section.read("cluster", config.cluster);
  if (!is_host_name(config.cluster)) section.refuse("cluster", "letters, digits, '-' only");
}

void read_path(ConfigSection& section, std::string_view key, std::string& path) {
  section.read(key, path);
  if (section.has(key) && !path.starts_with('/')) section.refuse(key, "must be an absolute path");
}

// Returns which of the two heads this one is: the head that `named` names, else the one whose
// address is `listen`, else the one with this host's name.
std::optional<std::uint32_t> find_self(const std::vector<std::string>& names,
                                       const std::string& named, const HeadConfig& config) {
  const auto only = [&](const auto& is_self) -> std::optional<std::uint32_t> {
    const auto first = std::ranges::find_if(names, is_self);
    if (std::ranges::count_if(names, is_self) != 1) return std::nullopt;
    return static_cast<std::uint32_t>(first - names.begin());
  };
  if (!named.empty()) return only([&](const std::string& name) { return name == named; });
  const std::string listen = proto::format_endpoint(config.listen);
  if (const auto self = only([&](const std::string& name) { return name == listen; })) return self;
  const auto facts = read_host_facts();
  if (!facts) return std::nullopt;
  return only([&](const std::string& name) {
    const auto host = name.substr(0, name.rfind(':'));
    return host == facts->name || host.starts_with(facts->name + ".");
  });
}

void read_heads(ConfigSection& section, HeadConfig& config) {
  std::vector<std::string> names;
  std::string named;
  section.read("heads", names);
  section.read("this_head", named);
  if (names.empty() && named.empty()) return;
  if (names.size() != 2 || names[0] == names[1]) {
    return section.refuse("heads", "must be two different \"HOST:PORT\"");
  }
  for (const std::string& name : names) {
    auto endpoint = proto::parse_endpoint(name);
    if (!endpoint || endpoint->port == 0) {
      return section.refuse("heads", "must be two different \"HOST:PORT\"");
    }
    config.heads.push_back(*std::move(endpoint));
  }
  const auto self = find_self(names, named, config);
  if (!self) {
    return section.refuse(named.empty() ? "heads" : "this_head",
                          "none or both of the heads are this host: set this_head to one of them");
  }
  config.self = *self;
}

// A majority of one, three or five hosts is easy to keep running and to protect; an even number
// permits no more failures than one less.
void read_witnesses(ConfigSection& section, HeadConfig& config) {
  std::string text;
  section.read("witnesses", text);
  if (text.empty()) return;
  auto names = expand_hostlist(text);
  if (!names) return section.refuse("witnesses", plain_text(names.error()));
  if (!config.has_two_heads()) section.refuse("witnesses", "only two heads have witnesses");
  const std::set<std::string> unique(names->begin(), names->end());
  if (unique.size() != names->size() ||
      (names->size() != 1 && names->size() != 3 && names->size() != 5)) {
    section.refuse("witnesses", "name one, three or five different nodes");
  }
  for (const std::string& name : *names) {
    const bool is_node = std::ranges::find(config.nodes, name) != config.nodes.end();
    if (!is_node) section.refuse("witnesses", name + " is not one of the nodes");
  }
  config.witnesses = *std::move(names);
}

void read_places(ConfigSection& section, HeadConfig& config) {
  std::string listen = proto::format_endpoint(config.listen);
  section.read("listen", listen);
  if (auto endpoint = proto::parse_endpoint(listen)) {
    config.listen = *endpoint;
  } else {
    section.refuse("listen", "must be \"address:port\"");
  }
  read_path(section, "run_dir", config.run_dir);
  read_path(section, "socket", config.socket);
  if (config.socket.empty()) config.socket = config.run_dir + "/head.sock";
  read_path(section, "state_dir", config.state_dir);
  read_path(section, "key_file", config.key_file);
  read_heads(section, config);
  read_witnesses(section, config);
}

void read_settings(ConfigSection& section, Settings& out) {
  for (const SettingRule& rule : settings()) {
    SettingValue value = out[rule.setting];
    if (rule.kind == SettingRule::Kind::Time) {
      Duration time(value);
      section.read(rule.key, time, Duration(rule.least), Duration(rule.most));
      value = time.count();
    } else if (rule.kind == SettingRule::Kind::Number) {
      section.read(rule.key, value, rule.least, rule.most);
    } else {
      bool is_on = value != 0;
      section.read_switch(rule.key, is_on);
      value = is_on ? 1 : 0;
    }
    out.set(rule.setting, value);
  }
}

void read_fill_queues(ConfigSection& section, HeadConfig& config) {
  std::vector<std::string> names = {"high", "normal"};
  section.read("fill_queues", names);
  config.fill_queues.clear();
  for (const std::string& name : names) {
    if (name != "high" && name != "normal") {
      return section.refuse("fill_queues", "unknown queue '" + name + "' (high or normal)");
    }
    config.fill_queues.push_back(name == "high" ? Queue::High : Queue::Normal);
  }
}

void read_policy(ConfigSection& section, HeadConfig& config) {
  section.read("operators", config.operators.users);
  section.read("operator_group", config.operators.group);
  section.read("virtual", config.virtual_cluster);
  section.read_choice("log_level", config.log_level,
                      {{"error", LogLevel::Error},
                       {"warning", LogLevel::Warning},
                       {"notice", LogLevel::Notice},
                       {"info", LogLevel::Info},
                       {"debug", LogLevel::Debug}});
  section.read_choice("control", config.control_over_pm, {{"pm", true}, {"tls", false}});
  section.read("control_fanout", config.control_fanout, kLeastFanout, kMostFanout);
  read_settings(section, config.settings);
  section.read("switch_always", config.switch_always);
  section.read("requeue", config.requeue);
  section.read_choice("placement", config.placement,
                      {{"matrix", gang::Placement::Matrix}, {"dqt", gang::Placement::Dqt}});
  section.read("long_limit", config.long_limit, 0s, kMostLongLimit);
  section.read("long_shared", config.long_shared, 0s, kMostLongLimit);
  section.read("long_early", config.long_early, 0s, kMostLongLimit);
  section.read("long_slots", config.long_slots, 1U, limits::kMaxSlots);
  section.read("long_weight", config.long_weight, 1U, kMostLongWeight);
  read_fill_queues(section, config);
  section.read("front_end_grace", config.front_end_grace, 0s, kMaxGrace);
  section.read("kill_grace", config.kill_grace, 0s, kMaxGrace);
  section.read("launch_deadline", config.launch_deadline, 1s, kMaxGrace);
  section.read("kill_deadline", config.kill_deadline, 1s, kMaxGrace);
  section.read("rejoin_grace", config.rejoin_grace, 1s, kMaxGrace);
  section.read("deadlock_after", config.deadlock_after, gang::ClusterConfig::kMinDeadlockAfter,
               kMaxGrace);
  section.read("node_timeout", config.node_timeout, gang::ClusterConfig::kMinNodeTimeout,
               kMaxGrace);
  section.read("idle_timeout", config.idle_timeout, 1s, 24h);
  section.read("write_timeout", config.write_timeout, 1s, kMaxGrace);
}

void read_lease(ConfigSection& root, ConfigSection& section, HeadConfig& config) {
  config.lease = read_lease_config(root);
  if (!config.lease.is_in_etcd()) return;
  if (!config.has_two_heads()) root.section("heads").refuse("lease", "only two heads have a lease");
  if (!config.witnesses.empty()) {
    section.refuse("witnesses", "the lease is in etcd, so no node is a witness");
  }
}

Result<HeadConfig> read_config(Result<ConfigFile> file) {
  if (!file) return file.error();
  HeadConfig config;
  ConfigSection root = file->root();
  ConfigSection section = root.section("head");
  read_names(section, config);
  read_places(section, config);
  read_policy(section, config);
  config.network = read_network_config(root);
  if (config.settings[Setting::Fill] != 0 && config.network.switch_mode == SwitchMode::Barrier) {
    section.refuse("fill", "must be \"off\" with switch_mode = \"barrier\"");
  }
  ConfigSection bounds = root.section("limits");
  config.limits = read_user_limits(bounds);
  config.accounts = read_accounts(root, bounds);
  config.hooks = read_hooks_config(root);
  config.memory = read_memory_config(root);
  config.notify = read_notify_config(root.section("notify"));
  config.partitions = read_partitions(root, config.nodes, config.accounts);
  config.licenses = read_licenses(root);
  config.topology = read_topology(root, config.nodes);
  read_lease(root, section, config);
  ConfigSection watched = root.section("monitor");
  if (config.virtual_cluster) {  // its only user may drive it by programs
    config.monitor.has_api = true;
    config.monitor.api_socket = config.run_dir + "/api.sock";
  }
  monitor::read_settings(watched, config.monitor);
  ignore_other_tables(
      root, {"head", "heads", "network", "limits", "monitor", "accounts", "fair_share", "hooks",
             "notify", "partitions", "licenses", "topology", "memory"});
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

}  // namespace

gang::ClusterConfig HeadConfig::for_cluster() const {
  gang::ClusterConfig out;
  for (const SettingRule& rule : base::settings()) {
    gang::set_setting(out, rule.setting, settings[rule.setting]);
  }
  out.switch_always = switch_always;
  out.placement = placement;
  out.long_limit = long_limit;
  out.long_shared = long_shared;
  out.long_early = long_early;
  out.long_slots = long_slots;
  out.long_weight = long_weight;
  out.fill_queues = fill_queues;
  out.can_fill = network.switch_mode != SwitchMode::Barrier;
  out.names_nodes = control_over_pm && network.switch_mode == SwitchMode::Barrier;
  out.launch_deadline = launch_deadline;
  // Nodes prepare a job after its prolog, which may wait for the epilog of an earlier attempt.
  if (hooks.has_job_hooks()) out.launch_deadline += 2 * hooks.timeout;
  out.kill_deadline = kill_deadline;
  if (hooks.has_job_hooks()) out.epilog_limit = hooks.timeout + kHookMargin;
  out.rejoin_grace = rejoin_grace;
  out.deadlock_after = deadlock_after;
  out.confirms_deadlocks = true;
  out.node_timeout = node_timeout;
  out.memory_share = memory.share;
  out.memory_cost_percent = memory.cost_percent;
  out.memory_turn_max = memory.turn_max;
  out.memory_idle_after = memory.idle_after;
  out.unparked_queues = memory.unparked_queues;
  out.unparked_partitions = memory.unparked_partitions;
  return out;
}

std::vector<std::string> HeadConfig::user_groups() const {
  std::vector<std::string> groups = accounts.groups();
  std::ranges::copy(partitions.groups(), std::back_inserter(groups));
  return groups;
}

Result<HeadConfig> load_config(const std::string& path) {
  auto config = read_config(ConfigFile::load_own(path));
  if (config) config->file = path;
  return config;
}

Result<HeadConfig> parse_config(std::string_view text, const std::string& name) {
  return read_config(ConfigFile::parse(text, name));
}

Status check_reload(const HeadConfig& running, const HeadConfig& wanted) {
  std::string changed;
  const auto compare = [&changed](std::string_view key, const auto& before, const auto& after) {
    if (!(before == after)) changed += fmt::format("{}{}", changed.empty() ? "" : ", ", key);
  };
  compare("cluster", running.cluster, wanted.cluster);
  compare("listen", running.listen, wanted.listen);
  compare("heads", std::tie(running.self, running.heads), std::tie(wanted.self, wanted.heads));
  // The nodes decide as witnesses which head is in charge, so both heads must count the same ones.
  if (running.has_two_heads()) {
    compare("nodes", running.configured_nodes, wanted.configured_nodes);
  }
  compare("witnesses", running.witnesses, wanted.witnesses);
  compare("[heads]", running.lease, wanted.lease);
  compare("run_dir", running.run_dir, wanted.run_dir);
  compare("socket", running.socket, wanted.socket);
  compare("state_dir", running.state_dir, wanted.state_dir);
  compare("key_file", running.key_file, wanted.key_file);
  compare("launch_deadline", running.launch_deadline, wanted.launch_deadline);
  compare("kill_deadline", running.kill_deadline, wanted.kill_deadline);
  compare("rejoin_grace", running.rejoin_grace, wanted.rejoin_grace);
  compare("deadlock_after", running.deadlock_after, wanted.deadlock_after);
  compare("node_timeout", running.node_timeout, wanted.node_timeout);
  compare("control", running.control_over_pm, wanted.control_over_pm);
  compare("control_fanout", running.control_fanout, wanted.control_fanout);
  compare("switch_always", running.switch_always, wanted.switch_always);
  compare("placement", running.placement, wanted.placement);
  compare("long_limit", running.long_limit, wanted.long_limit);
  compare("long_shared", running.long_shared, wanted.long_shared);
  compare("long_early", running.long_early, wanted.long_early);
  compare("long_slots", running.long_slots, wanted.long_slots);
  compare("long_weight", running.long_weight, wanted.long_weight);
  compare("[memory]", running.memory, wanted.memory);
  compare("[hooks] prolog", running.hooks.prolog, wanted.hooks.prolog);
  compare("[hooks] epilog", running.hooks.epilog, wanted.hooks.epilog);
  compare("[hooks] timeout", running.hooks.timeout, wanted.hooks.timeout);
  monitor::MonitorSettings monitor = wanted.monitor;
  monitor.is_private = running.monitor.is_private;
  compare("[monitor]", running.monitor, monitor);
  if (!changed.empty()) {
    return fail(Errc::WrongState, "{}: a change needs a restart of the head; nothing was reloaded",
                changed);
  }
  for (const std::string& name : running.nodes) {
    if (std::find(wanted.nodes.begin(), wanted.nodes.end(), name) == wanted.nodes.end()) {
      return fail(Errc::WrongState, "nodes: first run `scadm node remove {}`; nothing was reloaded",
                  name);
    }
  }
  return {};
}

}  // namespace score::head
