#pragma once
// JobVolumes sends the decisions of VolumeCollector about the striped volumes of jobs to the nodes.
// Callers have checked that the attempt is on the node.

#include "proto/node.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/volumes/volume_collector.hpp"

namespace score::head {

class JobVolumes {
 public:
  // Both references must outlive this object.
  JobVolumes(ClusterRunner& runner, NodeLinks& links) : runner_(runner), links_(links) {}

  void ready(NodeId node, const wire::ScratchReady& message);

  void close(AttemptId attempt) { collector_.close(attempt); }

 private:
  ClusterRunner& runner_;
  NodeLinks& links_;
  VolumeCollector collector_;
};

}  // namespace score::head
