#pragma once
// What nodes report about attempts, handed to the part that it concerns. A report that makes no
// sense is counted; one about an attempt that is not ours is answered with a kill.

#include "gang/head/reconciler.hpp"

namespace score::gang {

// Nodes that are not connected are left out.
struct Hearsay {
  std::vector<NodeId> alive{};
  std::vector<NodeId> silent{};
  Duration silent_for{0};         // at least
  std::vector<NodeId> deaf{};     // they say that nothing of what is sent to them arrives
  std::vector<NodeId> hearing{};  // they say the opposite
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
  };

  explicit Reports(const Parts& parts) : p_(parts) {}

  // A sign of life.
  void heartbeat(NodeId id, Step& step);
  void hearsay(const Hearsay& hearsay, Step& step);
  // Any message but NodeHello.
  void received(NodeId id, const base::NodeToHead& message, Step& step);

 private:
  // The node, if it is connected: then it was heard of. Else the report is counted.
  std::optional<NodeIndex> heard(NodeId id, Step& step);
  void about_job(Job& job, std::size_t member, const base::NodeToHead& message, Step& step);
  void about_tasks(Job& job, std::size_t member, const base::NodeToHead& message, Step& step);

  Parts p_;
};

}  // namespace score::gang
