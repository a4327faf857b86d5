#include "scored/head/cluster/node_links.hpp"

#include "base/text.hpp"

#include <utility>

namespace score::head {

NodeId NodeLinks::add(std::string name) {
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    link(known->second) = Link();
    link(known->second).name = std::move(name);
    return known->second;
  }
  const NodeId id(static_cast<std::uint32_t>(links_.size()));
  by_name_.emplace(name, id);
  Link link;
  link.name = std::move(name);
  links_.push_back(std::move(link));
  return id;
}

void NodeLinks::remove(NodeId node) {
  Link& removed = link(node);
  removed.is_removed = true;
  if (removed.connection) removed.connection->close();
}

Result<NodeId> NodeLinks::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || link(found->second).is_removed)
    return fail(Errc::NotFound, "no node {}", escape_terminal(name, 80));
  return found->second;
}

std::vector<NodeId> NodeLinks::connected() const {
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    if (links_[i].connection) nodes.emplace_back(i);
  }
  return nodes;
}

void NodeLinks::send(NodeId node, proto::FrameType type, std::string_view payload) {
  if (const auto& connection = link(node).connection) connection->send(type, payload);
}

void NodeLinks::send_shared(NodeId node, std::shared_ptr<const std::string> frame) {
  if (const auto& connection = link(node).connection) connection->send_shared(std::move(frame));
}

}  // namespace score::head
