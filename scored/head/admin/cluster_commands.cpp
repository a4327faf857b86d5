#include "scored/head/admin/cluster_commands.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scored/head/store/settings.hpp"

#include <utility>

namespace score::head {
namespace {

const Peer kConfiguration{UserId(0), proto::Role::Root, "configuration", "file"};

std::string shown_reason(const DrainNodes& command) {
  return escape_terminal(command.reason, limits::kMaxErrorTextBytes);
}

struct WantedSetting {
  Setting setting;
  SettingValue value;
};

Result<WantedSetting> read_change(const ChangeSetting& command) {
  const SettingRule* rule = find_setting(command.name);
  if (rule == nullptr) {
    return fail(Errc::NotFound, "no setting '{}'", escape_terminal(command.name, 80));
  }
  const auto value = parse_setting(*rule, command.value);
  if (!value) return value.error();
  return WantedSetting{rule->setting, *value};
}

// Returns the settings of the configuration file that have changed.
std::vector<ChangeSetting> changes_between(const Settings& before, const Settings& after) {
  std::vector<ChangeSetting> changes;
  for (const SettingRule& rule : settings()) {
    const SettingValue value = after[rule.setting];
    if (value == before[rule.setting]) continue;
    changes.push_back({std::string(rule.name), format_setting(rule, value)});
  }
  return changes;
}

}  // namespace

Result<Changes> ClusterCommands::check(const Peer&, const ChangeSetting& command) {
  const auto wanted = read_change(command);
  if (!wanted) return wanted.error();
  if (auto possible = head_.runner.cluster().check(wanted->setting, wanted->value); !possible) {
    return possible.error();
  }
  return Changes{value_setting(wanted->setting, wanted->value)};
}

Result<Effect> ClusterCommands::prepare(const Peer&, const ChangeSetting& command) {
  const auto wanted = read_change(command);
  if (!wanted) return wanted.error();
  return effect_of(head_, head_.runner.cluster().set(wanted->setting, wanted->value, now()));
}

Result<std::vector<NodeId>> ClusterCommands::nodes_of(const DrainNodes& command) const {
  std::vector<NodeId> nodes;
  for (const std::string& list : command.nodes) {
    const auto names = expand_hostlist(list);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto node = head_.links.find(name);
      if (!node) return node.error();
      nodes.push_back(*node);
    }
  }
  if (nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  return nodes;
}

Result<Changes> ClusterCommands::check(const Peer&, const DrainNodes& command) {
  const auto nodes = nodes_of(command);
  if (!nodes) return nodes.error();
  Changes changes;
  for (const NodeId node : *nodes) {
    changes.emplace_back(
        drain_setting(head_.links.name(node),
                      command.resume ? std::nullopt : std::optional(shown_reason(command))));
  }
  return changes;
}

Result<Effect> ClusterCommands::prepare(const Peer&, const DrainNodes& command) {
  auto nodes = nodes_of(command);
  if (!nodes) return nodes.error();
  return [this, nodes = std::move(*nodes), reason = shown_reason(command), command] {
    gang::Cluster& cluster = head_.runner.cluster();
    for (const NodeId node : nodes) {
      auto actions =
          command.resume ? cluster.resume_node(node, now()) : cluster.drain(node, reason, now());
      if (actions) head_.runner.perform(std::move(*actions));
    }
  };
}

Result<NodeChanges> ClusterCommands::changes_with(const ChangeNodes& command) const {
  if (command.nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  auto changes = NodeChanges::load(parts_.config.state_dir);
  if (!changes) return changes.error();
  for (const std::string& name : command.nodes) {
    const std::string shown = escape_terminal(name, 80);
    if (!is_host_name(name)) return fail(Errc::Malformed, "'{}' is not a node name", shown);
    const auto node = head_.links.find(name);
    if (!command.removes) {
      if (node) return fail(Errc::Exists, "{} is a node of this cluster already", shown);
      changes->add(name);
      continue;
    }
    if (!node) return node.error();
    if (auto free = head_.runner.cluster().check_removal(*node); !free) return free.error();
    changes->remove(name);
  }
  const std::size_t count = changes->applied_to(parts_.config.configured_nodes).size();
  if (count == 0) return fail(Errc::WrongState, "a cluster needs at least one node");
  if (count > limits::kMaxNodes) {
    return fail(Errc::TooLarge, "a cluster has at most {} nodes", limits::kMaxNodes);
  }
  return changes;
}

// Settings of an earlier node of this name do not apply to a new one.
Result<Changes> ClusterCommands::check(const Peer&, const ChangeNodes& command) {
  const auto changes = changes_with(command);
  if (!changes) return changes.error();
  Changes stored{SaveSetting{fmt::format("{}{}", kFilePrefix, kNodeChangesFile), changes->text()}};
  for (const std::string& name : command.nodes) {
    stored.emplace_back(drain_setting(name, std::nullopt));
  }
  return stored;
}

Result<Effect> ClusterCommands::prepare(const Peer&, const ChangeNodes& command) {
  const auto changes = changes_with(command);
  if (!changes) return changes.error();
  return [this, changes = *changes, command] {
    HeadConfig& config = parts_.config;
    changes.write(config.state_dir);
    config.nodes = changes.applied_to(config.configured_nodes);
    for (const std::string& name : command.nodes) command.removes ? remove(name) : add(name);
  };
}

void ClusterCommands::add(const std::string& node) {
  if (auto added = add_node(node); !added) {
    return log_error("Cannot add node", kv("node", node), kv("err", added.error()));
  }
  log_notice("Added node", kv("node", node));
}

void ClusterCommands::remove(const std::string& node) {
  const auto id = head_.links.find(node);
  if (!id) return;
  auto actions = head_.runner.cluster().remove_node(*id, now());
  if (!actions) {
    return log_error("Cannot remove node", kv("node", node), kv("err", actions.error()));
  }
  head_.links.remove(*id);
  head_.runner.perform(std::move(*actions));
  log_notice("Removed node", kv("node", node));
}

Result<Changes> ClusterCommands::check(const Peer&, const ReserveNodes& command) {
  const auto booking = parts_.reservations.plan(command.wanted, command.ends_jobs);
  if (!booking) return booking.error();
  return Changes{reserve_setting(booking->name, pack_booking(*booking))};
}

// Plans again, because jobs may have been placed on these nodes in the meantime.
Result<Effect> ClusterCommands::prepare(const Peer&, const ReserveNodes& command) {
  auto booking = parts_.reservations.plan(command.wanted, command.ends_jobs);
  if (!booking) return booking.error();
  return [this, booking = std::move(*booking)] { parts_.reservations.make(booking); };
}

Result<Changes> ClusterCommands::check(const Peer&, const RemoveReservation& command) {
  if (auto known = parts_.reservations.check_removal(command.name); !known) return known.error();
  return Changes{reserve_setting(command.name, std::nullopt)};
}

Result<Effect> ClusterCommands::prepare(const Peer&, const RemoveReservation& command) {
  return [this, name = command.name] { parts_.reservations.remove(name); };
}

// ---- configuration ------------------------------------------------------------------------------

Status ClusterCommands::add_node(const std::string& name) {
  return head_.runner.cluster().add_node(head_.links.add(name), name);
}

Result<Changes> ClusterCommands::check(const Peer&, const ReloadConfiguration&) {
  auto wanted = parts_.read_configuration();
  if (!wanted) return wanted.error();
  auto changes = check_file(*wanted);
  if (changes) wanted_ = std::move(*wanted);
  return changes;
}

Result<Effect> ClusterCommands::prepare(const Peer&, const ReloadConfiguration&) {
  return [this] { take_file(*std::exchange(wanted_, std::nullopt)); };
}

Result<Changes> ClusterCommands::check_file(const HeadConfig& wanted) {
  const HeadConfig& config = parts_.config;
  if (auto possible = check_reload(config, wanted); !possible) return possible.error();
  Changes changes;
  for (const ChangeSetting& change : changes_between(config.settings, wanted.settings)) {
    auto one = check(kConfiguration, change);
    if (!one) return one.error();
    changes.insert(changes.end(), one->begin(), one->end());
  }
  return changes;
}

void ClusterCommands::change(const ChangeSetting& command) {
  const auto effect = prepare(kConfiguration, command);
  if (!effect) return log_error("Cannot apply a changed setting", kv("err", effect.error()));
  audit(head_, kConfiguration, command);
  (*effect)();
}

void ClusterCommands::take_file(HeadConfig wanted) {
  HeadConfig& config = parts_.config;
  for (const std::string& name : wanted.nodes) {
    if (!head_.links.has(name)) add(name);
  }
  for (const ChangeSetting& each : changes_between(config.settings, wanted.settings)) change(each);
  head_.runner.perform(head_.runner.cluster().set_fill_queues(wanted.fill_queues, now()));
  parts_.networks.set_channels(wanted.network.channels);
  head_.users.set_rule(wanted.operators);
  head_.users.set_exempt(wanted.limits.exempt);
  head_.users.set_account_groups(wanted.user_groups());
  set_log_level(wanted.log_level);
  config = std::move(wanted);
  apply_rules();
  parts_.shares.reload();
}

void ClusterCommands::apply_rules() {
  gang::Cluster& cluster = head_.runner.cluster();
  const LicenseRules& licenses = parts_.config.licenses;
  head_.runner.perform(cluster.set_partitions(parts_.config.partitions.for_cluster(), now()));
  if (auto topology = gang::Topology::make(parts_.config.topology)) {  // read_topology() checked it
    head_.runner.perform(cluster.set_topology(std::move(*topology), now()));
  }
  head_.runner.perform(cluster.set_licenses(licenses.totals, licenses.release_suspended, now()));
}

}  // namespace score::head
