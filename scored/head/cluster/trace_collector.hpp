#pragma once
// TraceCollector collects the switch records of all nodes for a trace.

#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "scored/head/cluster/node_poll.hpp"

namespace score::head {

class TraceCollector {
 public:
  using Done = std::function<void(wire::Trace)>;

  // All references must outlive this object.
  TraceCollector(Clock& clock, NodeLinks& links, Alarm& alarm)
      : links_(links), poll_(clock, links, alarm) {}

  // Collects the records of the last `since`. Errors: Busy, see
  // NodePoll::ask().
  [[nodiscard]] Status gather(const std::string& asker, Duration since, Done done);
  // Takes a node's part; a reply with an unknown tag is dropped.
  void reply(NodeId node, wire::NodeTraceReply&& message);

  // ---- called in turn
  void tick(TimePoint now) { poll_.tick(now); }

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return poll_.next_deadline(); }

 private:
  struct Parts {
    wire::Trace trace;
    std::size_t bytes = 0;

    void add_silent_nodes(const std::string& name) { trace.add_silent_nodes(name); }
  };

  NodeLinks& links_;
  NodePoll<Parts> poll_;
};

}  // namespace score::head
