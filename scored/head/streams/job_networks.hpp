#pragma once
// JobNetworks sends the decisions of NetworkCollector about the networks of running jobs to the
// nodes. Callers have checked that the attempt runs on the node.

#include "proto/node.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/streams/network_collector.hpp"

#include <optional>

namespace score::head {

class JobNetworks {
 public:
  // `head` must outlive this object.
  explicit JobNetworks(HeadContext& head) : head_(head), collector_(head.config.network.channels) {}

  void request(NodeId node, AttemptId attempt);
  void prepared(NodeId node, wire::NetworkPrepared&& message);
  void refused(NodeId node, const wire::NetworkRefused& message);

  // Forgets an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt);

  void set_channels(std::uint32_t count) { collector_.set_channels(count); }

 private:
  struct Sender {
    NetworkCollector::Job job;
    std::size_t index = 0;  // index of the node in the job
  };

  [[nodiscard]] std::optional<Sender> sender(NodeId node, AttemptId attempt) const;
  void note_sharing(AttemptId attempt, bool shares);
  void note_opened(AttemptId attempt);
  void send(AttemptId attempt, const Sender& sender, const NetworkCollector::Answer& answer);

  HeadContext& head_;
  NetworkCollector collector_;
};

}  // namespace score::head
