#pragma once
// Reconciler is responsible for nodes that connect and disconnect. It compares the attempts in a
// node's hello with those that the head has there; the attempts of a lost node fail with it.

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
  // Handles the passing of time: silent nodes become suspect or lost.
  void advance(Step& step);

  // Handles a node's report about an attempt that is not, or no longer, ours. `is_gone` means that
  // nothing of it is left there.
  void stranger(NodeIndex node, AttemptId attempt, bool is_gone, Step& step);
  // Handles nodes that did not end the attempt in time. The job does not wait for those with a
  // link: it ends, and nothing is placed on them until they report the attempt gone. The others
  // reconnect or go down soon.
  void kill_overdue(Job& job, Step& step);

 private:
  void accept_hardware(NodeIndex node, const base::NodeInfo& info, Step& step);
  void end_impossible(Step& step);
  void compare(NodeIndex node, const base::NodeHello& hello, Step& step);
  [[nodiscard]] bool is_known_end(NodeIndex node, AttemptId attempt) const;
  static void note_attempt(Job& job, AttemptId attempt);
  void compare_known(Job& job, std::size_t member, const base::AttemptReport& report, Step& step);
  void missing(Job& job, std::size_t member, Step& step);
  void kill_as_zombie(NodeIndex node, AttemptId attempt, Step& step);
  void node_down(NodeIndex node, const std::string& reason, Step& step);
  void lose_jobs(NodeIndex node, const std::string& reason, Step& step);
  void stop_awaiting(NodeIndex node);

  Parts p_;
};

}  // namespace score::gang
