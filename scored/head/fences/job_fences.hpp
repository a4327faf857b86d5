#pragma once
// JobFences carries the PMI barriers of running jobs: it turns FenceEnter into events of
// FenceCollector, and its actions into FenceDone. All calls come from one thread.

#include "proto/node.pb.h"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/fences/fence_collector.hpp"

#include <map>
#include <vector>

namespace score::head {

class JobFences {
 public:
  // `links` must outlive this object.
  explicit JobFences(NodeLinks& links) : links_(links) {}

  // Lets the nodes of an attempt enter fences. A second call changes nothing.
  void open(AttemptId attempt, UserId user, const std::vector<NodeId>& nodes);
  // Forgets an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt);

  // Handles a message of the attempt's node with this index. Errors: as FenceCollector, Malformed.
  // The attempt cannot continue after an error.
  [[nodiscard]] Status entered(std::size_t node_index, wire::FenceEnter&& message);
  // The attempt's tasks on the node have all ended, so fences do not wait for it.
  void node_ended(AttemptId attempt, std::size_t node_index);
  void link_lost(AttemptId attempt, std::size_t node_index);

 private:
  void send(const FenceCollector::Actions& actions);
  void send_one(const std::vector<NodeId>& nodes, FenceCollector::Key key, const FetchPiece& fetch);
  void send_one(const std::vector<NodeId>& nodes, FenceCollector::Key key, const SendPiece& piece);

  NodeLinks& links_;
  FenceCollector collector_;
  std::map<AttemptId, std::vector<NodeId>> nodes_;  // by node index
};

}  // namespace score::head
