#pragma once
// The nodes as the head knows them: names, hardware, connection, state. It does not know what is
// placed on them; that is Placer's.

#include "base/result.hpp"
#include "gang/control/beat_timing.hpp"
#include "gang/matrix/matrix.hpp"
#include "gang/state/config.hpp"
#include "gang/state/failure_detector.hpp"
#include "gang/state/step.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace score::gang {

enum class NodeState : std::uint8_t { Unknown, Up, Suspect, Down };

struct Node {
  NodeId id{0};
  base::NodeInfo info;
  bool seen = false;  // info came from the node itself
  NodeState state = NodeState::Unknown;
  bool connected = false;
  base::TimePoint lost_at{};  // when its last connection ended; epoch: it never did
  bool announced = false;     // its daemon said that it stops, before the connection ended
  bool drained = false;
  std::string drain_reason;
  std::string down_reason;
  // Attempts that run here but have ended for the head: nothing is placed beside them.
  std::set<AttemptId> zombies;
  bool stuck = false;  // did not end an attempt in time: Suspect until its zombies are gone
};

class NodeTable {
 public:
  explicit NodeTable(const ClusterConfig& config)
      : detector_({config.suspect_after, config.node_timeout, config.reconnect_grace,
                   BeatTiming{}.vouched_for}) {}

  // Error: name or id twice, or too many.
  base::Result<NodeIndex> add(NodeId id, std::string name);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

  [[nodiscard]] const Node& operator[](NodeIndex index) const { return nodes_[index]; }

  [[nodiscard]] const std::vector<Node>& all() const { return nodes_; }  // [node]

  [[nodiscard]] const std::string& name(NodeIndex index) const { return nodes_[index].info.name; }

  [[nodiscard]] std::optional<NodeIndex> find(NodeId id) const;
  [[nodiscard]] std::optional<NodeIndex> find(const std::string& name) const;
  [[nodiscard]] std::vector<NodeId> ids() const;  // ascending
  [[nodiscard]] bool all_seen() const;

  // Nothing happens if it is not connected.
  void send(NodeIndex index, base::HeadToNode message, Step& step) const;

  // ---- the connection
  void set_hardware(NodeIndex index, const base::NodeInfo& info);
  // It said hello: what was known of its attempts is void.
  void connect(NodeIndex index, Step& step);
  void disconnect(NodeIndex index, bool was_announced, Step& step);
  void set_down(NodeIndex index, std::string reason, Step& step);
  // A sign of life of a connected node. True if it is Up again because of it.
  bool heard(NodeIndex index, Step& step);
  // Others say so; see FailureDetector.
  bool vouched(NodeIndex index, Step& step);

  // Nothing that is sent to it arrives, it says; see FailureDetector.
  void deaf(NodeIndex index, Step& step);

  void hears(NodeIndex index) { detector_.hears(nodes_[index].id); }

  void denied(NodeIndex index, TimePoint since) { detector_.denied(nodes_[index].id, since); }

  // Nodes that fell silent, oldest first; a Suspect one is marked so already.
  std::vector<FailureDetector::Change> advance(Step& step);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return detector_.next_deadline(); }

  // ---- a restarted head waits for nodes on which jobs ran
  void await(NodeIndex index, TimePoint now, TimePoint deadline);

  // True if it was awaited, and was the last one.
  bool stop_awaiting(NodeIndex index) { return awaited_.erase(index) > 0 && awaited_.empty(); }

  [[nodiscard]] bool is_awaited(NodeIndex index) const { return awaited_.contains(index); }

  [[nodiscard]] bool is_awaiting() const { return !awaited_.empty(); }

  // ---- what it cannot get rid of
  void add_zombie(NodeIndex index, AttemptId attempt);
  // True if it was the last one: the node may be used again.
  bool remove_zombie(NodeIndex index, AttemptId attempt, Step& step);
  void set_stuck(NodeIndex index, Step& step);

  // ---- operators
  void drain(NodeIndex index, std::string reason, Step& step);
  // False: it was not drained.
  bool resume(NodeIndex index, Step& step);

 private:
  void set_state(Node& node, NodeState state, Step& step);
  void refresh(Node& node, Step& step);

  std::vector<Node> nodes_;  // [node]
  std::map<NodeId, NodeIndex> index_;
  std::unordered_map<std::string, NodeIndex> names_;
  FailureDetector detector_;
  std::set<NodeIndex> awaited_;
};

}  // namespace score::gang
