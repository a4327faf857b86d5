#pragma once
// JobVolumes sends the decisions of VolumeCollector about the striped volumes of jobs to the nodes.
// Callers have checked that the attempt is on the node.

#include "proto/node.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/streams/volume_collector.hpp"

namespace score::head {

class JobVolumes {
 public:
  // `head` must outlive this object.
  explicit JobVolumes(HeadContext& head) : head_(head) {}

  void ready(NodeId node, const wire::ScratchReady& message);

  void close(AttemptId attempt) { collector_.close(attempt); }

 private:
  HeadContext& head_;
  VolumeCollector collector_;
};

}  // namespace score::head
