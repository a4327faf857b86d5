#pragma once
// NodeTable holds the nodes as the head knows them: names, hardware, connection and state. Placer
// knows which jobs are placed on them.

#include "base/result.hpp"
#include "gang/control/beat_timing.hpp"
#include "gang/matrix/matrix.hpp"
#include "gang/state/config.hpp"
#include "gang/state/failure_detector.hpp"
#include "gang/state/partitions.hpp"
#include "gang/state/step.hpp"
#include "gang/state/topology.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace score::gang {

enum class NodeState : std::uint8_t { Unknown, Up, Suspect, Down };

struct Node {
  NodeId id{0};
  base::NodeInfo info;
  bool seen = false;  // info came from the node itself
  NodeState state = NodeState::Unknown;
  bool connected = false;
  base::TimePoint lost_at{};  // time when its last connection ended; epoch: never
  bool announced = false;     // its daemon announced its stop before the connection ended
  bool drained = false;
  bool removed = false;  // not part of the cluster; keeps its index, which a node of its name gets
  std::string drain_reason;
  std::string down_reason;
  // Attempts that run here but have ended for the head; nothing is placed next to them.
  std::set<AttemptId> zombies;
  bool stuck = false;  // did not end an attempt in time: Suspect until its zombies are gone
};

class NodeTable {
 public:
  explicit NodeTable(const ClusterConfig& config)
      : detector_({config.suspect_after, config.node_timeout, config.reconnect_grace,
                   BeatTiming{}.vouched_for}) {}

  // Fails if the name or the id exists already, or there are too many nodes. A removed node comes
  // back with its id and its index.
  base::Result<NodeIndex> add(NodeId id, std::string name);
  // Takes a node out of the cluster: it has no hardware and is no longer found. Nothing may be
  // placed on it.
  void remove(NodeIndex index, Step& step);

  // Counts removed nodes too, because their indexes stay in use; count() does not.
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  [[nodiscard]] std::size_t count() const;

  [[nodiscard]] const Node& operator[](NodeIndex index) const { return nodes_[index]; }

  [[nodiscard]] const std::vector<Node>& all() const { return nodes_; }  // [node]

  [[nodiscard]] const std::string& name(NodeIndex index) const { return nodes_[index].info.name; }

  [[nodiscard]] std::optional<NodeIndex> find(NodeId id) const;
  [[nodiscard]] std::optional<NodeIndex> find(const std::string& name) const;
  [[nodiscard]] std::vector<NodeId> ids() const;  // ascending
  [[nodiscard]] bool all_seen() const;

  // ---- partitions of the nodes
  [[nodiscard]] const Partitions& partitions() const { return partitions_; }

  void set_partitions(std::vector<Partition> all) { partitions_.set(std::move(all)); }

  // ---- the switches between them
  [[nodiscard]] const Topology& topology() const { return topology_; }

  void set_topology(Topology topology);

  // Returns the leaf switch of each node [node].
  [[nodiscard]] const std::vector<Topology::Leaf>& leaves() const { return leaves_; }

  // Sends the message; does nothing if the node is not connected.
  void send(NodeIndex index, base::HeadToNode message, Step& step) const;

  // ---- the connection
  void set_hardware(NodeIndex index, const base::NodeInfo& info);
  // Records a hello: the earlier knowledge of its attempts is void.
  void connect(NodeIndex index, Step& step);
  void disconnect(NodeIndex index, bool was_announced, Step& step);
  void set_down(NodeIndex index, std::string reason, Step& step);
  // Records a sign of life of a connected node. Returns true if the node is Up again because of it.
  bool heard(NodeIndex index, Step& step);
  // Records a sign of life that other nodes report; see FailureDetector.
  bool vouched(NodeIndex index, Step& step);

  // Records the node's report that it receives nothing; see FailureDetector.
  void deaf(NodeIndex index, Step& step);

  void hears(NodeIndex index) { detector_.hears(nodes_[index].id); }

  void denied(NodeIndex index, TimePoint since) { detector_.denied(nodes_[index].id, since); }

  // Returns the nodes that fell silent, the oldest first. A Suspect one is already marked so.
  std::vector<FailureDetector::Change> advance(Step& step);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return detector_.next_deadline(); }

  // ---- a restarted head waits for nodes on which jobs ran
  void await(NodeIndex index, TimePoint now, TimePoint deadline);

  // Returns true if it was awaited and was the last one.
  bool stop_awaiting(NodeIndex index) { return awaited_.erase(index) > 0 && awaited_.empty(); }

  [[nodiscard]] bool is_awaited(NodeIndex index) const { return awaited_.contains(index); }

  [[nodiscard]] bool is_awaiting() const { return !awaited_.empty(); }

  // ---- attempts that a node could not end
  void add_zombie(NodeIndex index, AttemptId attempt);
  // Returns true if it was the last one, so that the node may be used again.
  bool remove_zombie(NodeIndex index, AttemptId attempt, Step& step);
  void set_stuck(NodeIndex index, Step& step);

  // ---- operators
  void drain(NodeIndex index, std::string reason, Step& step);
  // Returns false if it was not drained.
  bool resume(NodeIndex index, Step& step);

 private:
  void set_state(Node& node, NodeState state, Step& step);
  void refresh(Node& node, Step& step);

  std::vector<Node> nodes_;  // [node]
  std::map<NodeId, NodeIndex> index_;
  std::unordered_map<std::string, NodeIndex> names_;
  FailureDetector detector_;
  std::set<NodeIndex> awaited_;
  Partitions partitions_;
  Topology topology_;
  std::vector<Topology::Leaf> leaves_;  // [node]
};

}  // namespace score::gang
