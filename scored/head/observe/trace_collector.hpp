#pragma once
// Gathers the switch records of all nodes for a trace: asks each connected node, and answers when
// all have replied or after 2 s, naming the silent ones.

#include "base/async/alarm.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "scored/head/cluster/node_links.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace score::head {

class TraceCollector {
 public:
  using Done = std::function<void(wire::Trace)>;

  // All must outlive it.
  TraceCollector(Clock& clock, NodeLinks& links, Alarm& alarm)
      : clock_(clock), links_(links), alarm_(alarm) {}

  // Of the last `since`. Errors: Busy (8 are being gathered: each is work for every node).
  [[nodiscard]] Status gather(Duration since, Done done);
  // A node's part; of an unknown tag it is dropped.
  void reply(NodeId node, wire::NodeTraceReply&& message);

  // ---- called in turn
  void tick(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Collection {
    wire::Trace trace;
    std::set<NodeId> missing;
    std::size_t bytes = 0;
    TimePoint until{};
    Done done;
  };

  Clock& clock_;
  NodeLinks& links_;
  Alarm& alarm_;
  std::map<std::uint64_t, Collection> collections_;
  std::uint64_t next_tag_ = 1;
};

}  // namespace score::head
