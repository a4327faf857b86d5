#pragma once
// Nodes come and go. What a node that says hello has is compared with what the head has there,
// attempt by attempt; what a lost node had has failed with it.

#include "gang/lifecycle/launching.hpp"

#include <string>

namespace score::gang {

class Reconciler {
 public:
  struct Parts {
    Tables& tables;
    Placer& placer;
    Publisher& publisher;
    Meetings& meetings;
    Ending& ending;
    Launching& launching;
  };

  explicit Reconciler(const Parts& parts) : p_(parts) {}

  void connected(NodeId id, const base::NodeHello& hello, Step& step);
  void disconnected(NodeId id, bool was_announced, Step& step);
  // Time has passed: nodes that fell silent are suspect or lost.
  void advance(Step& step);

  // A node reports about an attempt that is not, or no longer, ours; `is_gone`: nothing of it is
  // left there.
  void stranger(NodeIndex node, AttemptId attempt, bool is_gone, Step& step);
  // Nodes did not end the attempt in time. Those with a link are not waited for: the job ends, and
  // nothing is placed on them until they report the attempt gone. The others come back or go down
  // soon.
  void kill_overdue(Job& job, Step& step);

 private:
  void accept_hardware(NodeIndex node, const base::NodeInfo& info, Step& step);
  void end_impossible(Step& step);
  void compare(NodeIndex node, const base::NodeHello& hello, Step& step);
  [[nodiscard]] bool is_known_end(NodeIndex node, AttemptId attempt) const;
  static void note_attempt(Job& job, AttemptId attempt);
  void compare_known(Job& job, std::size_t member, const base::AttemptReport& report, Step& step);
  void missing(Job& job, std::size_t member, Step& step);
  void bury(NodeIndex node, AttemptId attempt, Step& step);
  void node_down(NodeIndex node, const std::string& reason, Step& step);
  void lose_jobs(NodeIndex node, const std::string& reason, Step& step);
  void stop_awaiting(NodeIndex node);

  Parts p_;
};

}  // namespace score::gang
