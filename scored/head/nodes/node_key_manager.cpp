#include "scored/head/nodes/node_key_manager.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/transport/setup_token.hpp"
#include "scored/shared/journal/event.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace score::head {
namespace {

std::uint64_t seconds_now() {
  const auto now = wall_now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

NodeKeyManager::NodeKeyManager(Parts parts, const std::string& directory)
    : parts_(parts),
      keys_(fmt::format("{}/{}", directory, kNodeKeysFile)),
      file_(parts.commits, directory, kNodeKeysFile) {}

Status NodeKeyManager::load() {
  if (auto loaded = keys_.load(); !loaded) return loaded;
  file_.share();
  return {};
}

std::optional<proto::Key> NodeKeyManager::key_of(std::string_view identity) const {
  const auto node = proto::parse_node_identity(identity);
  if (!node || !parts_.links.has(node->node)) return std::nullopt;
  if (!keys_.accepts(*node)) {
    refused_.insert(node->node);
    return std::nullopt;
  }
  return parts_.ring.node_key(*node);
}

std::string NodeKeyManager::fault_of(const std::string& node) const {
  const bool is_revoked = !keys_.state(node).current;
  if (!is_revoked && !refused_.contains(node)) return {};
  return fmt::format("{}: `scadm key rotate {}` prints the line to run there, as root",
                     is_revoked ? "its key was revoked" : "its key is not accepted any more", node);
}

void NodeKeyManager::used(const proto::NodeIdentity& identity, std::function<void()> then) {
  refused_.erase(identity.node);
  if (keys_.state(identity.node).next != identity.generation) return then();
  const auto next = std::make_shared<NodeKeys>(keys_);
  const auto make = [this, next, identity]() -> Result<std::string> {
    *next = keys_;
    next->used(identity);
    return next->text();
  };
  file_.change(make, [this, next, identity, then = std::move(then)](const auto& logged) {
    if (!logged) {
      log_error("Cannot store that a node uses its new key; both keys are accepted",
                kv("node", identity.node), kv("err", logged.error()));
      return then();
    }
    keys_ = *next;
    log_notice("Node uses its new key; the old one is refused", kv("node", identity.node));
    disconnect(identity.node);
    then();
  });
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

void NodeKeyManager::execute(const Peer& peer, const wire::ManageKeys& command,
                             const Reply& reply) {
  auto nodes = nodes_of(command);
  if (!nodes) return reply(nodes.error());
  const bool rotates = command.what() == wire::ManageKeys::ROTATE;
  const bool revokes = command.what() == wire::ManageKeys::REVOKE;
  if (rotates || revokes) return change(peer, *std::move(nodes), rotates, reply);
  parts_.commits.confirm({}, [this, nodes = *std::move(nodes), reply](const auto& logged) {
    if (!logged) return reply(logged.error());
    reply(Logged<wire::NodeKeyList>{list_of(nodes, false), *logged});
  });
}

void NodeKeyManager::change(const Peer& peer, std::vector<std::string> nodes, bool rotates,
                            const Reply& reply) {
  struct Next {
    NodeKeys keys;
    std::vector<std::string> nodes;
  };

  const auto next = std::make_shared<Next>(Next{keys_, std::move(nodes)});
  const auto make = [this, next, rotates]() -> Result<std::string> {
    next->keys = keys_;
    const std::uint64_t now_s = std::max(seconds_now(), parts_.ring.newest().number);
    if (rotates) {
      next->nodes = next->keys.rotate(next->nodes, now_s);
    } else {
      next->keys.revoke(next->nodes, now_s);
    }
    return next->keys.text();
  };
  file_.change(make, [this, next, rotates, peer, reply](const Result<LogReceipt>& logged) {
    if (!logged) return reply(logged.error());
    keys_ = next->keys;
    for (const std::string& node : next->nodes) {
      if (rotates) break;
      disconnect(node);
      if (on_revoked_) on_revoked_(node);
    }
    report(Event::CommandDone, kv("user", peer.name),
           kv("action", rotates ? "rotate key" : "revoke key"),
           kv("node", fmt::format("{}", fmt::join(next->nodes, ","))), kv("via", peer.via));
    reply(Logged<wire::NodeKeyList>{list_of(next->nodes, true), *logged});
  });
}

wire::NodeKeyList NodeKeyManager::list_of(const std::vector<std::string>& nodes,
                                          bool with_tokens) const {
  wire::NodeKeyList list;
  for (const std::string& node : nodes) {
    *list.add_nodes() = state_of(node);
    if (with_tokens) add_token(*list.mutable_nodes(list.nodes_size() - 1));
  }
  return list;
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
  const NodeKeys::State& known = keys_.state(node);
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
