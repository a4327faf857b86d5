#include "gang/state/node_table.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

using base::Errc;
using base::fail;

base::Result<NodeIndex> NodeTable::add(NodeId id, std::string name) {
  const auto known = index_.find(id);
  if (known != index_.end() && this->name(known->second) == name && nodes_[known->second].removed) {
    Node& node = nodes_[known->second];
    node = Node();
    node.id = id;
    node.info.name = std::move(name);
    return known->second;
  }
  if (index_.contains(id)) return fail(Errc::Exists, "node {} exists already", id);
  if (names_.contains(name)) return fail(Errc::Exists, "node {} exists already", name);
  if (nodes_.size() >= base::limits::kMaxNodes) {
    return fail(Errc::TooLarge, "more than {} nodes", base::limits::kMaxNodes);
  }
  const auto index = static_cast<NodeIndex>(nodes_.size());
  leaves_.push_back(topology_.leaf_of(name));
  index_.emplace(id, index);
  names_.emplace(name, index);
  Node& node = nodes_.emplace_back();
  node.id = id;
  node.info.name = std::move(name);
  return index;
}

std::optional<NodeIndex> NodeTable::find(NodeId id) const {
  const auto found = index_.find(id);
  if (found == index_.end() || nodes_[found->second].removed) return std::nullopt;
  return found->second;
}

std::optional<NodeIndex> NodeTable::find(const std::string& name) const {
  const auto found = names_.find(name);
  if (found == names_.end() || nodes_[found->second].removed) return std::nullopt;
  return found->second;
}

void NodeTable::set_topology(Topology topology) {
  topology_ = std::move(topology);
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    leaves_[index] = topology_.leaf_of(name(index));
  }
}

std::vector<NodeId> NodeTable::ids() const {
  std::vector<NodeId> out;
  for (const auto& [id, index] : index_) {
    if (!nodes_[index].removed) out.push_back(id);
  }
  return out;
}

void NodeTable::remove(NodeIndex index, Step& step) {
  Node& node = nodes_[index];
  detector_.forget(node.id);
  awaited_.erase(index);
  std::string name = std::move(node.info.name);
  node.info = base::NodeInfo();
  node.info.name = std::move(name);
  node.info.cores = 0;
  node.seen = true;
  node.connected = false;
  node.drained = true;
  node.removed = true;
  set_state(node, NodeState::Down, step);
}

std::size_t NodeTable::count() const {
  return static_cast<std::size_t>(std::ranges::count(nodes_, false, &Node::removed));
}

bool NodeTable::all_seen() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.seen; });
}

void NodeTable::send(NodeIndex index, base::HeadToNode message, Step& step) const {
  const Node& node = nodes_[index];
  if (node.connected) step.actions.push_back(SendToNode{node.id, std::move(message)});
}

void NodeTable::set_state(Node& node, NodeState state, Step& step) {
  if (node.state == state) return;
  node.state = state;
  step.node_changed(node.id);
}

void NodeTable::refresh(Node& node, Step& step) {
  if (!node.connected) return;
  const bool is_good = detector_.verdict(node.id) == Verdict::Alive && !node.stuck;
  set_state(node, is_good ? NodeState::Up : NodeState::Suspect, step);
}

// ---- the connection ---------------------------------------------------------------------------

void NodeTable::set_hardware(NodeIndex index, const base::NodeInfo& info) {
  nodes_[index].info = info;
  nodes_[index].seen = true;
}

void NodeTable::connect(NodeIndex index, Step& step) {
  Node& node = nodes_[index];
  node.connected = true;
  node.stuck = false;
  node.down_reason.clear();
  node.zombies.clear();
  detector_.watch(node.id, step.now);
  refresh(node, step);
}

void NodeTable::disconnect(NodeIndex index, bool was_announced, Step& step) {
  nodes_[index].connected = false;
  nodes_[index].lost_at = step.now;
  nodes_[index].announced = was_announced;
  detector_.lost_link(nodes_[index].id, step.now, was_announced);
  set_state(nodes_[index], NodeState::Suspect, step);
}

void NodeTable::set_down(NodeIndex index, std::string reason, Step& step) {
  nodes_[index].connected = false;
  nodes_[index].down_reason = std::move(reason);
  set_state(nodes_[index], NodeState::Down, step);
}

bool NodeTable::heard(NodeIndex index, Step& step) {
  Node& node = nodes_[index];
  if (!detector_.heard(node.id, step.now)) return false;
  refresh(node, step);
  return node.state == NodeState::Up;
}

bool NodeTable::vouched(NodeIndex index, Step& step) {
  Node& node = nodes_[index];
  if (!detector_.vouched(node.id, step.now)) return false;
  refresh(node, step);
  return node.state == NodeState::Up;
}

void NodeTable::deaf(NodeIndex index, Step& step) {
  if (detector_.deaf(nodes_[index].id, step.now))
    set_state(nodes_[index], NodeState::Suspect, step);
}

std::vector<FailureDetector::Change> NodeTable::advance(Step& step) {
  std::vector<FailureDetector::Change> changes = detector_.advance(step.now);
  for (const FailureDetector::Change& change : changes) {
    if (change.verdict != Verdict::Suspect) continue;
    set_state(nodes_[index_.at(change.node)], NodeState::Suspect, step);
  }
  return changes;
}

void NodeTable::await(NodeIndex index, TimePoint now, TimePoint deadline) {
  awaited_.insert(index);
  detector_.expect(nodes_[index].id, now, deadline);
}

// ---- zombies ----------------------------------------------------------------------------------

void NodeTable::add_zombie(NodeIndex index, AttemptId attempt) {
  std::set<AttemptId>& zombies = nodes_[index].zombies;
  if (zombies.size() < base::limits::kMaxJobsPerNode) zombies.insert(attempt);
}

bool NodeTable::remove_zombie(NodeIndex index, AttemptId attempt, Step& step) {
  Node& node = nodes_[index];
  node.zombies.erase(attempt);
  if (!node.zombies.empty()) return false;
  node.stuck = false;
  refresh(node, step);
  return true;
}

void NodeTable::set_stuck(NodeIndex index, Step& step) {
  nodes_[index].stuck = true;
  refresh(nodes_[index], step);
}

// ---- operators --------------------------------------------------------------------------------

void NodeTable::drain(NodeIndex index, std::string reason, Step& step) {
  nodes_[index].drained = true;
  nodes_[index].drain_reason = std::move(reason);
  step.node_changed(nodes_[index].id);
}

bool NodeTable::resume(NodeIndex index, Step& step) {
  Node& node = nodes_[index];
  if (!std::exchange(node.drained, false)) return false;
  node.drain_reason.clear();
  step.node_changed(node.id);
  return true;
}

}  // namespace score::gang
