#include "scored/head/nodes/node_key_manager.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/transport/setup_token.hpp"
#include "scored/shared/journal/event.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::head {
namespace {

std::uint64_t seconds_now() {
  const auto now = wall_now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

std::optional<proto::Key> NodeKeyManager::key_of(std::string_view identity) const {
  const auto node = proto::parse_node_identity(identity);
  if (!node || !parts_.links.has(node->node) || !parts_.keys.accepts(*node)) return std::nullopt;
  return parts_.ring.node_key(*node);
}

void NodeKeyManager::used(const proto::NodeIdentity& identity) {
  const auto is_new = parts_.keys.used(identity);
  if (!is_new) {
    return log_error("Cannot store that a node uses its new key; both keys are accepted",
                     kv("node", identity.node), kv("err", is_new.error()));
  }
  if (!*is_new) return;
  log_notice("Node uses its new key; the old one is refused", kv("node", identity.node));
  disconnect(identity.node);
}

// The node's jobs continue, as after a stop of its daemon; the node reconnects with its new key.
void NodeKeyManager::disconnect(const std::string& node) {
  const auto known = parts_.links.find(node);
  if (!known) return;
  NodeLinks::Link& link = parts_.links.link(*known);
  if (!link.connection) return;
  link.is_stopping = true;
  link.connection->close();
}

Result<wire::NodeKeyList> NodeKeyManager::execute(const Peer& peer,
                                                  const wire::ManageKeys& command) {
  auto nodes = nodes_of(command);
  if (!nodes) return nodes.error();
  const std::uint64_t now_s = std::max(seconds_now(), parts_.ring.newest().number);
  const bool rotates = command.what() == wire::ManageKeys::ROTATE;
  const bool revokes = command.what() == wire::ManageKeys::REVOKE;
  if (rotates) {
    nodes = parts_.keys.rotate(*nodes, now_s);
    if (!nodes) return nodes.error();
  } else if (revokes) {
    if (auto revoked = parts_.keys.revoke(*nodes, now_s); !revoked) return revoked.error();
    for (const std::string& node : *nodes) {
      disconnect(node);
      if (on_revoked_) on_revoked_(node);
    }
  }
  if (rotates || revokes) {
    report(Event::CommandDone, kv("user", peer.name),
           kv("action", rotates ? "rotate key" : "revoke key"),
           kv("node", fmt::format("{}", fmt::join(*nodes, ","))), kv("via", peer.via));
  }
  wire::NodeKeyList reply;
  for (const std::string& node : *nodes) {
    *reply.add_nodes() = state_of(node);
    if (rotates || revokes) add_token(*reply.mutable_nodes(reply.nodes_size() - 1));
  }
  return reply;
}

Result<std::vector<std::string>> NodeKeyManager::nodes_of(const wire::ManageKeys& command) const {
  if (command.nodes().empty() && command.what() == wire::ManageKeys::REVOKE) {
    return fail(Errc::Malformed, "name the nodes whose keys are to be revoked");
  }
  if (command.nodes().empty()) return parts_.config.nodes;
  std::vector<std::string> nodes(command.nodes().begin(), command.nodes().end());
  std::ranges::sort(nodes);
  nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
  for (const std::string& node : nodes) {
    if (std::ranges::find(parts_.config.nodes, node) != parts_.config.nodes.end()) continue;
    return fail(Errc::NotFound, "no node {}", escape_terminal(node, 80));
  }
  return nodes;
}

wire::NodeKeyState NodeKeyManager::state_of(const std::string& node) const {
  const NodeKeys::State& known = parts_.keys.state(node);
  wire::NodeKeyState state;
  state.set_node(node);
  state.set_generation(known.current.value_or(0));
  state.set_is_revoked(!known.current.has_value());
  state.set_next_generation(known.next.value_or(0));
  const std::uint64_t oldest = known.current.value_or(known.next.value_or(0));
  state.set_is_of_old_cluster_key(oldest < parts_.ring.newest().number);
  return state;
}

void NodeKeyManager::add_token(wire::NodeKeyState& state) const {
  const auto token = proto::new_setup_token(state.node(), wall_now());
  const auto key = proto::derive_setup_key(parts_.ring.newest().key, proto::setup_identity(token));
  state.set_token(proto::format_setup_secret({token, key}));
}

}  // namespace score::head
