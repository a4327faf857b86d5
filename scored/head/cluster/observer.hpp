#pragma once
// HeadObserver receives what happens to nodes, for the part that measures them.

#include "base/ids.hpp"
#include "proto/node.pb.h"

namespace score::head {

class HeadObserver {
 public:
  HeadObserver() = default;
  HeadObserver(const HeadObserver&) = delete;
  HeadObserver& operator=(const HeadObserver&) = delete;
  virtual ~HeadObserver() = default;

  virtual void node_connected(NodeId node) = 0;
  virtual void node_lost(NodeId node) = 0;
  virtual void node_sampled(NodeId node, const wire::NodeSample& sample) = 0;
  // A task of the job has ended on this node, or all remaining ones.
  virtual void task_ended(NodeId node, JobId job) = 0;
};

}  // namespace score::head
