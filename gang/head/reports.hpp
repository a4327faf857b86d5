#pragma once
// Reports passes the nodes' reports about attempts to the part that they concern. An invalid report
// is counted; one about an attempt that is not ours is answered with a kill.

#include "gang/head/reconciler.hpp"
#include "gang/lifecycle/parking.hpp"

namespace score::gang {

// Holds the reports of some nodes about others. Nodes that are not connected are ignored.
struct RelayedHeartbeats {
  std::vector<NodeId> alive{};
  std::vector<NodeId> silent{};
  Duration silent_for{0};         // at least
  std::vector<NodeId> deaf{};     // report that they receive nothing
  std::vector<NodeId> hearing{};  // report that they receive again
};

class Reports {
 public:
  struct Parts {
    Tables& tables;
    Placer& placer;
    Meetings& meetings;
    Ending& ending;
    IdleJobs& idle;
    Launching& launching;
    Reconciler& reconciler;
    Parking& parking;
  };

  explicit Reports(const Parts& parts) : p_(parts) {}

  // Records a sign of life.
  void heartbeat(NodeId id, Step& step);
  void relayed_heartbeats(const RelayedHeartbeats& relayed_heartbeats, Step& step);
  // Takes any message except NodeHello.
  void received(NodeId id, const base::NodeToHead& message, Step& step);

 private:
  // Returns the node if it is connected, and records a sign of life. Otherwise the report is
  // counted.
  std::optional<NodeIndex> heard(NodeId id, Step& step);
  void about_job(Job& job, std::size_t member, const base::NodeToHead& message, Step& step);
  void about_tasks(Job& job, std::size_t member, const base::NodeToHead& message, Step& step);

  Parts p_;
};

}  // namespace score::gang
