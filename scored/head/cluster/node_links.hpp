#pragma once
// NodeLinks has the nodes by name, their connections, and what they last reported about themselves.
// All calls come from one thread.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "proto/transport/connection.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

// NodeVitals holds the values of a node's hello and heartbeats, for display.
struct NodeVitals {
  wire::Switching switching;
  std::string network_problem;  // empty: none
  std::string release;          // empty: the node does not answer FactsRequest
  std::int64_t pid = 0;
  std::uint64_t instance = 0;          // see wire::NodeHello
  bool takes_attempt_secrets = false;  // likewise
  bool passes_refusals = false;        // likewise
  bool reads_stacks = false;           // likewise
  std::int64_t cpu_ns = 0;
  std::uint64_t rss_bytes = 0;
  std::int64_t clock_error_ns = 0;
  std::uint64_t switches = 0;
  std::uint64_t late_switches = 0;
  TimePoint last_heard{};  // epoch: never
  wire::NodeStatus::ControlPath control_path = wire::NodeStatus::TLS;
  std::string control_problem;  // see wire::NodeStatus
};

class NodeLinks {
 public:
  struct Link {
    std::string name;
    std::shared_ptr<proto::Connection> connection;  // null: not connected
    NodeVitals vitals;
    bool is_stopping = false;  // its daemon announced this over the connection
    bool is_removed = false;   // keeps its id, which add() returns again for its name
  };

  // Adds a node; ids count from 0. A name must be added only once, or again after remove().
  NodeId add(std::string name);
  // Closes its connection; find() and has() no longer know it.
  void remove(NodeId node);

  [[nodiscard]] bool has(std::string_view name) const { return find(name).has_value(); }

  // The id must be one that add() returned.
  [[nodiscard]] Link& link(NodeId node) { return links_[node.value()]; }

  [[nodiscard]] const Link& link(NodeId node) const { return links_[node.value()]; }

  [[nodiscard]] const std::string& name(NodeId node) const { return link(node).name; }

  [[nodiscard]] Result<NodeId> find(std::string_view name) const;

  [[nodiscard]] std::size_t size() const { return links_.size(); }

  [[nodiscard]] std::vector<NodeId> connected() const;

  // Sends a frame; drops it if the node is not connected. State that matters is sent again when the
  // node connects.
  void send(NodeId node, proto::FrameType type, std::string_view payload);
  void send_shared(NodeId node, std::shared_ptr<const std::string> frame);

  // Returns the bytes that wait to be sent to the node.
  [[nodiscard]] std::size_t queued_bytes(NodeId node) const {
    const auto& connection = link(node).connection;
    return connection ? connection->queued_bytes() : 0;
  }

  template <class Message>
  void send(NodeId node, const Message& message) {
    send(node, proto::frame_type<Message>(), message.SerializeAsString());
  }

 private:
  std::vector<Link> links_;
  std::map<std::string, NodeId, std::less<>> by_name_;
};

}  // namespace score::head
