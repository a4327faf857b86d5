#pragma once
// ControlManager is the head's part of the PM network of the daemons: it is rank 0 and makes the
// rosters. When a node joins or is declared dead, all members get a new roster with a new key.
// Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "gang/head/cluster.hpp"
#include "proto/node.pb.h"
#include "proto/transport/tls_connection.hpp"
#include "scored/control/control_network.hpp"
#include "scored/control/heartbeats.hpp"
#include "scored/control/timetables.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/nodes/control_members.hpp"

#include <cstdint>
#include <functional>

namespace score::head {

class ControlManager {
 public:
  // All parameters must outlive this object.
  ControlManager(asio::io_context& io, Clock& clock, NodeLinks& links);

  // Opens the network. Before, and after a failure, everything goes over TLS. `listen` is where
  // nodes reach the head, `most_fanout` the maximum fan-out of the tree; tasks run in `tasks`.
  // Errors: errno codes.
  Status open(const proto::TcpEndpoint& listen, std::uint32_t most_fanout, TaskGroup& tasks);
  // Stops receiving and sending.
  void close();

  // Sets the handler for what the heartbeats over PM show. Must be called once, before open().
  void on_relayed_heartbeats(std::function<void(const gang::RelayedHeartbeats&)> then) {
    on_relayed_heartbeats_ = std::move(then);
  }

  // Queues a timetable for a node; publish_timetables() sends all queued ones together.
  void set_timetable(NodeId node, const base::SetTimetable& message);
  void publish_timetables();

  // Returns the rank that the node will have; 0 if there is no network.
  [[nodiscard]] std::uint32_t rank_for(NodeId node) const;

  void offered(NodeId node, const wire::ControlOffer& offer);
  // Removes a node that was declared dead; its key is useless from the next roster on.
  void removed(NodeId node);

  [[nodiscard]] control::ControlNetwork& network() { return network_; }

  [[nodiscard]] const control::ControlNetwork& network() const { return network_; }

 private:
  void leave();
  void roster_changed();
  void hear(const control::HeadHeartbeats::News& news);
  void on_message(std::uint32_t source, const control::Message& message);
  void publish_soon();
  asio::awaitable<void> publish_when_due();
  void publish();
  void send_keys(NodeId node, const control::Roster& roster, const control::RosterKeys& keys);
  void send_roster(NodeId node);
  void set_path(NodeId node, wire::NodeStatus::ControlPath path, std::string problem = {});

  Clock& clock_;
  NodeLinks& links_;
  TaskGroup* tasks_ = nullptr;  // null: not open
  control::ControlNetwork network_;
  control::HeadHeartbeats heartbeats_;
  control::Timetables timetables_;
  control::Timetables::Publication unpublished_;
  std::function<void(const gang::RelayedHeartbeats&)> on_relayed_heartbeats_;
  ControlMembers members_;
  std::uint32_t generation_;
  control::LinkKey secret_;  // of the newest roster; all members' keys derive from it
  std::uint32_t most_fanout_ = gang::Tree::kDefaultFanout;
  bool is_publishing_ = false;
};

}  // namespace score::head
