#pragma once
// FactsCollector collects the facts of all hosts for `score doctor`, and how far their clocks are
// from this one's.

#include "base/time.hpp"
#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "scored/head/cluster/node_poll.hpp"
#include "scored/head/config/config.hpp"

namespace score::head {

class FactsCollector {
 public:
  using Done = std::function<void(wire::Facts)>;

  // All references must outlive this object.
  FactsCollector(Clock& clock, NodeLinks& links, Alarm& alarm, const HeadConfig& config)
      : config_(config), links_(links), poll_(clock, links, alarm) {}

  // Asks the connected nodes that support the request. Errors: Busy, see
  // NodePoll::ask().
  [[nodiscard]] Status gather(const std::string& asker, Done done);
  // Takes a node's facts; a reply with an unknown tag is dropped.
  void reply(NodeId node, wire::FactsReply&& message);

  // ---- called in turn
  void tick(TimePoint now) { poll_.tick(now); }

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return poll_.next_deadline(); }

 private:
  struct Parts {
    wire::Facts facts;
    WallTime asked{};

    void add_silent_nodes(const std::string& name) { facts.add_silent_nodes(name); }
  };

  const HeadConfig& config_;
  NodeLinks& links_;
  NodePoll<Parts> poll_;
};

}  // namespace score::head
