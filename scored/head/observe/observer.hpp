#pragma once
// Whoever wants to know what happens in the head. Called at once, on the head's thread; must not
// call back into what it is told about.

#include "monitor/model/event_log.hpp"
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
  // A task of it on this node, or all that was left of them.
  virtual void task_ended(NodeId node, JobId job) = 0;
  // at and wall are filled in.
  virtual void happened(monitor::Event event) = 0;
};

}  // namespace score::head
